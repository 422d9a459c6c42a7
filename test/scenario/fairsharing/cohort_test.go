package fairsharing

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestACohortsQuotaIsSharedByWeights: a lending queue gets a quota of eight CPUs while two queues of weights 1 and 3 in
// its cohort each have a demand for all of them. They get 2 and 6, and both report the same weighted share.
func TestACohortsQuotaIsSharedByWeights(t *testing.T) {
	w := newWorld(t)
	lender := w.lender(0)
	w.Shared(w.sharing("light", 0, "1"), w.sharing("heavy", 0, "3"))
	w.Create(w.local("light", "light"), w.local("heavy", "heavy"))
	for i := range 8 {
		w.Create(w.workload(fmt.Sprintf("light-%d", i), "light", 0), w.workload(fmt.Sprintf("heavy-%d", i), "heavy", 0))
	}
	for _, name := range []string{"heavy-7", "light-7"} {
		w.UntilWorkload(name, "waits", harness.Waits(kueue.WorkloadExceedsMaxQuota, ""))
	}
	w.Change(lender, func() {
		lender.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("8")
	})
	w.untilRunning("queue heavy runs three times as much as queue light",
		map[kueue.LocalQueueName]int{"light": 2, "heavy": 6})
	// Divided by their weights, both borrow 2 of the 8 CPUs: 250 per mille.
	for _, name := range []string{"light", "heavy"} {
		harness.UntilOne(w.World, &kueue.ClusterQueueList{}, w.Namespace+"-"+name, "has the weighted share 250",
			func(q *kueue.ClusterQueue) bool {
				return q.Status.FairSharing != nil && q.Status.FairSharing.WeightedShare == 250
			})
	}
}

// TestQuotaAboveTheFairShareIsReclaimed: a queue that uses all lent quota loses what is above its fair share to a queue
// that demands quota later. It keeps its fair share, although the other has more Workloads waiting.
func TestQuotaAboveTheFairShareIsReclaimed(t *testing.T) {
	w := newWorld(t)
	w.lender(8)
	w.Shared(w.sharing("early", 0, "1"), w.sharing("late", 0, "1"))
	w.Create(w.local("early", "early"), w.local("late", "late"))
	for i := range 8 {
		w.Create(w.workload(fmt.Sprintf("early-%d", i), "early", 0))
	}
	w.untilRunning("queue early runs 8 Workloads", map[kueue.LocalQueueName]int{"early": 8})
	for i := range 8 {
		w.Create(w.workload(fmt.Sprintf("late-%d", i), "late", 0))
	}
	w.untilRunning("both queues run 4 Workloads", map[kueue.LocalQueueName]int{"early": 4, "late": 4})
	preempted := 0
	var all kueue.WorkloadList
	harness.Until(w.World, &all, "8 Workloads report that they wait for quota", func(list *kueue.WorkloadList) bool {
		waiting := 0
		for i := range list.Items {
			if waits(&list.Items[i]) {
				waiting++
			}
		}
		return waiting == 8
	})
	for _, o := range all.Items {
		c := meta.FindStatusCondition(o.Status.Conditions, kueue.WorkloadPreempted)
		if c == nil {
			continue
		}
		preempted++
		if o.Spec.QueueName != "early" || c.Reason != kueue.InCohortFairSharingReason || c.Status != metav1.ConditionTrue {
			t.Errorf("%s in queue %s has Preempted=%s %s: %s, want only Workloads of queue early, with reason %s",
				o.Name, o.Spec.QueueName, c.Status, c.Reason, c.Message, kueue.InCohortFairSharingReason)
		}
	}
	if preempted != 4 {
		t.Errorf("%d Workloads were preempted, want 4", preempted)
	}
}
