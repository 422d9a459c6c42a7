package whatif

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/workload"
)

func TestTheEngineAnswersLikeTheOperator(t *testing.T) {
	a, b := admissiontest.NewWorkload("a", 3, admissiontest.Quantities("cpu", "1")),
		admissiontest.NewWorkload("b", 2, admissiontest.Quantities("cpu", "1"))
	admissiontest.Admit(a, admissiontest.Given("cq", 3), admissiontest.Now)
	objects := []client.Object{b, a, admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewClusterQueue("cq", "4"),
		admissiontest.NewFlavor("f"), admissiontest.Namespace.DeepCopy()}
	var first reason.Explanation
	for i := range 2 {
		x, ok := NewEngine(config.Default(), admissiontest.Now, objects...).Explain(engine.Key{Namespace: "ns", Name: "b"})
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
	if x, _ := NewEngine(config.Default(), admissiontest.Now,
		objects...).Explain(engine.Key{Namespace: "ns", Name: "a"}); x.State != reason.Admitted {
		t.Errorf("state of a = %s, want Admitted", x.State)
	}
}

// TestTheEngineKnowsForWhichWorkloadAnotherWasEvicted: the operator does not preempt a workload for one that was
// evicted for it, although the rules would allow that by now. An explanation must not say that it is about to.
func TestTheEngineKnowsForWhichWorkloadAnotherWasEvicted(t *testing.T) {
	owner, borrows := admissiontest.NewClusterQueue("cq", "1"), admissiontest.NewClusterQueue("borrows", "0")
	for _, q := range []*kueue.ClusterQueue{owner, borrows} {
		q.Spec.Cohort = "lab"
	}
	owner.Spec.Preemption = &kueue.ClusterQueuePreemption{ReclaimWithinCohort: kueue.PreemptionPolicyAny}
	runs, waits := admissiontest.NewWorkload("runs", 1, admissiontest.Quantities("cpu", "1")),
		admissiontest.NewWorkload("waits", 1, admissiontest.Quantities("cpu", "1"))
	runs.Spec.QueueName = "other"
	admissiontest.Admit(runs, admissiontest.Given("borrows", 1), admissiontest.Now)
	by := string(runs.UID)
	for name, tc := range map[string]struct {
		evictedFor string
		since      func()
		code       reason.Code
	}{
		"never evicted":              {"", func() {}, reason.WaitingForPreemptedWorkloads},
		"evicted for the one":        {by, func() {}, reason.WaitingForQuota},
		"evicted for another":        {"another-uid", func() {}, reason.WaitingForPreemptedWorkloads},
		"evicted, and changed since": {by, func() { waits.Generation++ }, reason.WaitingForPreemptedWorkloads},
		"evicted for lack of its pods": {"", func() {
			workload.Evict(waits, workload.Eviction{Reason: kueue.WorkloadEvictedDueToNodeFailures, Message: by},
				admissiontest.Now)
		}, reason.WaitingForPreemptedWorkloads},
	} {
		t.Run(name, func(t *testing.T) {
			waits = admissiontest.NewWorkload("waits", 1, admissiontest.Quantities("cpu", "1"))
			if tc.evictedFor != "" {
				workload.SetCondition(waits, kueue.WorkloadPreempted, metav1.ConditionTrue,
					kueue.InCohortReclaimWhileBorrowingReason, translate.PreemptorBegins+tc.evictedFor+translate.PreemptorEnds,
					admissiontest.Now)
				workload.SetCondition(waits, kueue.WorkloadRequeued, metav1.ConditionTrue, kueue.WorkloadEvictedByPreemption, "",
					admissiontest.Now)
			}
			tc.since()
			x, _ := NewEngine(config.Default(), admissiontest.Now, waits, runs, owner, borrows,
				admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewLocalQueue("other", "borrows"),
				admissiontest.NewFlavor("f"),
				admissiontest.Namespace.DeepCopy()).Explain(engine.Key{Namespace: "ns", Name: "waits"})
			if x.Code != tc.code {
				t.Errorf("waits is explained as %s, want %s: %+v", x.Code, tc.code, x)
			}
		})
	}
}

// TestTheEngineKnowsPlannedStarts: a job that would fit, and is held back for the sake of a promised start, is told so,
// and the job that is to start learns when.
func TestTheEngineKnowsPlannedStarts(t *testing.T) {
	cq := admissiontest.NewClusterQueue("cq", "4")
	cq.Annotations = map[string]string{muster.BackfillAnnotation: "true", muster.MaxDurationAnnotation: "2h"}
	runs, large, small := admissiontest.NewWorkload("a", 3, admissiontest.Quantities("cpu", "1")),
		admissiontest.NewWorkload("b", 4, admissiontest.Quantities("cpu", "1")),
		admissiontest.NewWorkload("c", 1, admissiontest.Quantities("cpu", "1"))
	admissiontest.Admit(runs, admissiontest.Given("cq", 3), admissiontest.Now)
	small.CreationTimestamp.Time = large.CreationTimestamp.Add(time.Second)
	e := NewEngine(config.Default(), admissiontest.Now.Add(time.Hour), small, large, runs, cq,
		admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewFlavor("f"), admissiontest.Namespace.DeepCopy())
	start := admissiontest.Now.Add(2 * time.Hour)
	if x, _ := e.Explain(engine.Key{Namespace: "ns", Name: "b"}); x.Start == nil || !x.Start.Promised ||
		!x.Start.At.Equal(start) {
		t.Errorf("the large job starts %+v, want a promise for %s", x.Start, start)
	}
	if x, _ := e.Explain(engine.Key{Namespace: "ns", Name: "c"}); x.Code != reason.BehindReservation ||
		x.Delays == nil || x.Delays.Name.Name != "b" || !x.Delays.Promised || !x.Delays.At.Equal(start) {
		t.Errorf("the small job waits for %s and delays %+v, want the promised start of b", x.Code, x.Delays)
	}
}
