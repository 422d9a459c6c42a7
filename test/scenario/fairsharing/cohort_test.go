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

// TestACohortsQuotaIsSharedByWeights: eight CPUs that belong to neither of two queues come while both want all of them.
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
	w.Change(lender, func() { lender.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("8") })
	w.untilRunning("who weighs three times as much has three times as much", map[kueue.LocalQueueName]int{"light": 2, "heavy": 6})
	// Both borrow a quarter of the eight, by their weights.
	for _, name := range []string{"light", "heavy"} {
		harness.UntilOne(w.World, &kueue.ClusterQueueList{}, w.Namespace+"-"+name, "tells its share", func(q *kueue.ClusterQueue) bool {
			return q.Status.FairSharing != nil && q.Status.FairSharing.WeightedShare == 250
		})
	}
}

// TestQuotaAboveTheFairShareIsReclaimed: and keeps what is his share, whatever the others still want.
func TestQuotaAboveTheFairShareIsReclaimed(t *testing.T) {
	w := newWorld(t)
	w.lender(8)
	w.Shared(w.sharing("early", 0, "1"), w.sharing("late", 0, "1"))
	w.Create(w.local("early", "early"), w.local("late", "late"))
	for i := range 8 {
		w.Create(w.workload(fmt.Sprintf("early-%d", i), "early", 0))
	}
	w.untilRunning("the first has all", map[kueue.LocalQueueName]int{"early": 8})
	for i := range 8 {
		w.Create(w.workload(fmt.Sprintf("late-%d", i), "late", 0))
	}
	w.untilRunning("both have the same", map[kueue.LocalQueueName]int{"early": 4, "late": 4})
	evicted := 0
	var all kueue.WorkloadList
	harness.Until(w.World, &all, "those who wait are told why", func(list *kueue.WorkloadList) bool {
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
		evicted++
		if o.Spec.QueueName != "early" || c.Reason != kueue.InCohortFairSharingReason || c.Status != metav1.ConditionTrue {
			t.Errorf("%s: %s %s: %s", o.Name, c.Status, c.Reason, c.Message)
		}
	}
	if evicted != 4 {
		t.Errorf("%d were evicted, want 4", evicted)
	}
}
