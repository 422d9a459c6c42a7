package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/config"
)

// TestAClockThatJumpsLosesNoWorkload: the clock jumps for the loop and for the deadlines. Running workloads keep
// running, waiting ones have a reason and are admitted when quota is free, and quota is counted once.
func TestAClockThatJumpsLosesNoWorkload(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"))
	hand := clocktesting.NewFakeClock(admissiontest.Now)
	r, stop := startOver(w, hand, func(l *loop) { l.auditor.Every = 0 })
	defer stop()
	deadlines := newWorkloads(w, lifecyclePolicy(config.Default()))
	deadlines.clock = hand
	submit := func(name string) {
		t.Helper()
		o := admissiontest.NewWorkload(name, 3, quantities("cpu", "1"))
		o.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](72 * 3600)
		if err := w.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	submit("w0")
	r.waitFor("w0", isAdmitted)
	for i, jump := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -48 * time.Hour, time.Nanosecond} {
		runs, waits := fmt.Sprintf("w%d", i), fmt.Sprintf("w%d", i+1)
		hand.SetTime(hand.Now().Add(jump))
		submit(waits)
		r.waitFor(waits, "QuotaReserved=False WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor f, 2 more needed")
		if wait := deadlines.settle(t, runs, w); wait <= 0 {
			t.Errorf("after a jump of %s: no requeue is scheduled for the deadline of %s", jump, runs)
		}
		if o := w.Workload(runs); o.Status.Admission == nil ||
			meta.FindStatusCondition(o.Status.Conditions, kueue.WorkloadEvicted) != nil {
			t.Errorf("after a jump of %s: %s lost its admission: %v", jump, runs, admissiontest.Conditions(o.Status.Conditions))
		}
		r.updateStatus(runs, func(o *kueue.Workload) {
			meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished,
				Status: metav1.ConditionTrue, Reason: kueue.WorkloadFinishedReasonSucceeded})
		})
		r.waitFor(waits, isAdmitted)
	}
	countsOnlyTheLast := func() bool {
		var q kueue.ClusterQueue
		return r.Get(t.Context(), client.ObjectKey{Name: "cq"}, &q) == nil && q.Status.AdmittedWorkloads == 1 &&
			q.Status.PendingWorkloads == 0
	}
	for timeout := time.After(admissiontest.Never); !countsOnlyTheLast(); {
		hand.Step(admissiontest.QueueStatusInterval / 10)
		select {
		case <-w.Wrote:
		case <-time.After(time.Millisecond): // real time, for the writer to react
		case <-timeout:
			t.Fatal("timed out waiting until the queue counts only the last Workload")
		}
	}
}

// TestAClockSetForwardDeactivatesForExecutionTime: a clock that is wrong deactivates Workloads whose execution time is
// over by it, with a condition, and affects the quota of no others.
func TestAClockSetForwardDeactivatesForExecutionTime(t *testing.T) {
	brief, other := admissiontest.AdmittedWorkload("a"), admissiontest.AdmittedWorkload("b")
	brief.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](600)
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"),
		admissiontest.NewLocalQueue("q", "cq"), brief, other)
	deadlines := newWorkloads(w, lifecyclePolicy(config.Default()))
	deadlines.clock = clocktesting.NewFakeClock(admissiontest.Now.Add(time.Hour))
	deadlines.settle(t, "a", w)
	deadlines.settle(t, "b", w)
	reported := strings.Join(admissiontest.Conditions(w.Workload("a").Status.Conditions), "\n")
	if !strings.Contains(reported, "Evicted=True DeactivatedDueToMaximumExecutionTimeExceeded") {
		t.Errorf("conditions of a = %s, want it evicted for its execution time", reported)
	}
	if b := w.Workload("b"); b.Status.Admission == nil {
		t.Errorf("conditions of b = %v, want it admitted", admissiontest.Conditions(b.Status.Conditions))
	}
}

// TestFinishedWorkloadsAreKeptByDefault: by default, finished Workloads are neither deleted nor requeued for deletion.
func TestFinishedWorkloadsAreKeptByDefault(t *testing.T) {
	over := admissiontest.NewWorkload("a", 1, nil)
	over.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue,
		Reason: kueue.WorkloadFinishedReasonSucceeded, LastTransitionTime: metav1.NewTime(admissiontest.Now)}}
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"), over)
	r := newWorkloads(w, lifecyclePolicy(config.Default()))
	for _, later := range []time.Duration{0, time.Hour, 10 * 365 * 24 * time.Hour} {
		r.clock = clocktesting.NewFakeClock(admissiontest.Now.Add(later))
		admissiontest.Expect(t, "wait", time.Duration(0), r.settle(t, "a", w))
	}
	admissiontest.Expect(t, "writes", []string(nil), w.Written())
}
