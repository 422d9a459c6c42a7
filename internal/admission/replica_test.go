package admission

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/workload"
)

func TestAReplicaAnswersLikeTheOperator(t *testing.T) {
	a, b := newWorkload("a", 3, quantities("cpu", "1")), newWorkload("b", 2, quantities("cpu", "1"))
	admit(a, decide(t, a).Admit, nil, now)
	objects := []client.Object{b, a, newLocalQueue("q", "cq"), newClusterQueue("cq", "4"), newFlavor("f"), namespace.DeepCopy()}
	var first reason.Explanation
	for i := range 2 {
		x, ok := NewReplica(config.Default(), now, objects...).Explain(engine.Key{Namespace: "ns", Name: "b"})
		if !ok || x.Code != reason.WaitingForQuota || len(x.Holders) != 1 || x.Holders[0].Name.Name != "a" {
			t.Fatalf("explanation of b = %+v, want it to wait for the quota of a", x)
		}
		if i == 0 {
			first = x
		} else if diff := cmp.Diff(first, x); diff != "" {
			t.Errorf("the explanation depends on the order of the objects:\n%s", diff)
		}
		slices.Reverse(objects)
	}
	if x, _ := NewReplica(config.Default(), now, objects...).Explain(engine.Key{Namespace: "ns", Name: "a"}); x.State != reason.Admitted {
		t.Errorf("state of a = %s, want Admitted", x.State)
	}
}

// TestAReplicaKnowsForWhichWorkloadAnotherWasEvicted: the operator does not preempt a workload for one that was evicted for
// it, although the rules would allow that by now. An explanation must not say that it is about to.
func TestAReplicaKnowsForWhichWorkloadAnotherWasEvicted(t *testing.T) {
	owner, borrows := newClusterQueue("cq", "1"), newClusterQueue("borrows", "0")
	for _, q := range []*kueue.ClusterQueue{owner, borrows} {
		q.Spec.Cohort = "lab"
	}
	owner.Spec.Preemption = &kueue.ClusterQueuePreemption{ReclaimWithinCohort: kueue.PreemptionPolicyAny}
	runs, waits := newWorkload("runs", 1, quantities("cpu", "1")), newWorkload("waits", 1, quantities("cpu", "1"))
	runs.Spec.QueueName = "other"
	admit(runs, &engine.Admission{ClusterQueue: "borrows", PodSets: []engine.Assignment{{
		PodSet: "main", Count: 1, Flavors: map[string]string{"cpu": "f"}, Usage: map[string]int64{"cpu": 1000}}}}, nil, now)
	by := string(runs.UID)
	for name, tc := range map[string]struct {
		evictedFor string
		since      func()
		code       reason.Code
	}{
		"never evicted":                {"", func() {}, reason.WaitingForPreemptedWorkloads},
		"evicted for the one":          {by, func() {}, reason.WaitingForQuota},
		"evicted for another":          {"another-uid", func() {}, reason.WaitingForPreemptedWorkloads},
		"evicted, and changed since":   {by, func() { waits.Generation++ }, reason.WaitingForPreemptedWorkloads},
		"evicted for lack of its pods": {"", func() { evict(waits, &engine.Eviction{Cause: preempt.NodeFailures, Detail: by}, preemptorJob{}, now) }, reason.WaitingForPreemptedWorkloads},
	} {
		t.Run(name, func(t *testing.T) {
			waits = newWorkload("waits", 1, quantities("cpu", "1"))
			if tc.evictedFor != "" {
				evict(waits, &engine.Eviction{Cause: preempt.ReclaimedWhileBorrowing, PreemptorUID: tc.evictedFor}, preemptorJob{}, now)
				workload.SetCondition(waits, kueue.WorkloadRequeued, metav1.ConditionTrue, kueue.WorkloadEvictedByPreemption, "", now)
			}
			tc.since()
			x, _ := NewReplica(config.Default(), now, waits, runs, owner, borrows, newLocalQueue("q", "cq"), newLocalQueue("other", "borrows"),
				newFlavor("f"), namespace.DeepCopy()).Explain(engine.Key{Namespace: "ns", Name: "waits"})
			if x.Code != tc.code {
				t.Errorf("waits is explained as %s, want %s: %+v", x.Code, tc.code, x)
			}
		})
	}
}
