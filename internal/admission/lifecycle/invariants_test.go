package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/workload"
)

// stepsMax bounds the writes after which a Workload must settle.
const stepsMax = 8

// model is one Workload with users, checks, a job, an engine, and a clock that jumps.
type model struct {
	w      *kueue.Workload
	facts  lifecycle.Facts
	policy lifecycle.Policy
	now    time.Time
	gone   bool
}

func newModel(t *rapid.T) *model {
	b := pending()
	if rapid.Bool().Draw(t, "is bare") {
		b = b.bare()
	}
	if rapid.Bool().Draw(t, "has a limit of execution time") {
		b.Spec.MaximumExecutionTimeSeconds = ptr.To(rapid.Int32Range(1, 7200).Draw(t, "limit"))
	}
	m := &model{w: b.Workload, facts: open(), policy: lifecycle.Policy{BackoffMax: policy.BackoffMax}, now: began}
	if rapid.Bool().Draw(t, "waits for ready pods") {
		ready := *policy.PodsReady
		if rapid.Bool().Draw(t, "gives up") {
			ready.BackoffLimit = ptr.To(rapid.Int32Range(0, 2).Draw(t, "tries"))
		}
		m.policy.PodsReady = &ready
	}
	if rapid.Bool().Draw(t, "deletes what is over") {
		m.policy.AfterFinished, m.policy.AfterDeactivated = ptr.To(time.Hour), ptr.To(time.Hour)
	}
	return m
}

// step takes the next step, if there is one, like an operator that has just started and knows only what is stored.
func (m *model) step(t *rapid.T) bool {
	before := m.w.DeepCopy()
	step := lifecycle.Next(m.w, m.facts, m.policy, m.now)
	if !equality.Semantic.DeepEqual(before, m.w) {
		t.Fatalf("Next changed the Workload that it was given: %s", cmp.Diff(before, m.w))
	}
	if !step.Due.IsZero() && !step.Due.After(m.now) {
		t.Fatalf("due at %s, which has passed", step.Due)
	}
	switch {
	case step.Status != nil:
		if equality.Semantic.DeepEqual(m.w.Status, step.Status.Status) {
			t.Fatal("a step writes an unchanged status")
		}
		m.w.Status = stored(step.Status).Status
	case step.Object != nil:
		m.w.Spec = stored(step.Object).Spec
		m.w.Generation++
	case step.Delete != lifecycle.Nothing:
		m.gone = true
	}
	m.check(t)
	return step.Writes()
}

// stored returns the Workload as the API server returns it.
func stored(w *kueue.Workload) *kueue.Workload {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	var out kueue.Workload
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return &out
}

// rest takes steps until none is left.
func (m *model) rest(t *rapid.T) {
	for range stepsMax {
		if m.gone || !m.step(t) {
			m.checkAtRest(t)
			return
		}
	}
	t.Fatalf("the Workload takes more than %d steps; conditions: %v", stepsMax, m.w.Status.Conditions)
}

// check verifies the invariants that hold after every write.
func (m *model) check(t *rapid.T) {
	w := m.w
	for what, wrong := range map[string]bool{
		"admitted without quota":               workload.IsAdmitted(w) && !workload.HoldsQuota(w),
		"admission and QuotaReserved disagree": workload.HoldsQuota(w) != workload.IsTrue(w, kueue.WorkloadQuotaReserved),
		"admitted although a check is not ready": workload.IsAdmitted(w) && !workload.IsEvicted(w) &&
			hasState(w, kueue.CheckStatePending),
		"warned of a time limit without quota": !workload.HoldsQuota(w) && workload.IsTrue(w, muster.TimeLimitNearCondition),
		"PodsReady without an admission": !workload.HoldsQuota(w) &&
			meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPodsReady) != nil,
	} {
		if wrong {
			t.Fatalf("%s: %v", what, w.Status.Conditions)
		}
	}
}

// checkAtRest verifies the invariants that hold when no step is left.
func (m *model) checkAtRest(t *rapid.T) {
	w := m.w
	if m.gone || workload.IsFinished(w) {
		return
	}
	requeued := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued)
	outOfQueue := requeued != nil && requeued.Status == metav1.ConditionFalse
	for what, wrong := range map[string]bool{
		"evicted without an owner, but holding quota": workload.IsEvicted(w) && workload.HoldsQuota(w) &&
			len(w.OwnerReferences) == 0,
		"active with a DeactivationTarget": workload.IsActive(w) &&
			workload.IsTrue(w, kueue.WorkloadDeactivationTarget),
		"inactive with a DeactivationTarget": !workload.IsActive(w) && !workload.HoldsQuota(w) &&
			workload.IsTrue(w, kueue.WorkloadDeactivationTarget),
		"inactive but not evicted": !workload.IsActive(w) && !workload.IsEvicted(w),
		"inactive but in backoff":  !workload.IsActive(w) && w.Status.RequeueState != nil,
		"inactive but requeued":    !workload.IsActive(w) && !workload.HoldsQuota(w) && !outOfQueue,
		"active but out of its queue for inactivity": workload.IsActive(w) && !workload.HoldsQuota(w) && outOfQueue &&
			workload.IsDeactivation(requeued.Reason),
		"a Retry of a check was ignored": hasState(w, kueue.CheckStateRetry) && !workload.IsEvicted(w),
	} {
		if wrong {
			t.Fatalf("%s: %v, requeueState %v", what, w.Status.Conditions, w.Status.RequeueState)
		}
	}
}

func hasState(w *kueue.Workload, state kueue.CheckState) bool {
	for _, c := range w.Status.AdmissionChecks {
		if c.State == state {
			return true
		}
	}
	return false
}

// waits reports whether the engine would consider the Workload for admission.
func (m *model) waits() bool {
	return workload.IsActive(m.w) && !workload.IsFinished(m.w) && !workload.HoldsQuota(m.w) &&
		(m.w.Status.RequeueState == nil || m.w.Status.RequeueState.RequeueAt == nil) &&
		!meta.IsStatusConditionFalse(m.w.Status.Conditions, kueue.WorkloadRequeued)
}

// admit admits the Workload as the engine would.
func (m *model) admit() {
	if !m.waits() || stoppedBy(m.facts.LocalQueue.Spec.StopPolicy) || stoppedBy(m.facts.ClusterQueue.Spec.StopPolicy) {
		return
	}
	m.w.Status.Admission = reserved().Status.Admission
	m.w.Status.AdmissionChecks = nil
	workload.SetCondition(m.w, kueue.WorkloadQuotaReserved, metav1.ConditionTrue,
		kueue.WorkloadQuotaReservedReason, "", m.now)
	if workload.IsEvicted(m.w) {
		workload.SetCondition(m.w, kueue.WorkloadEvicted, metav1.ConditionFalse, kueue.WorkloadQuotaReservedReason, "", m.now)
	}
}

func stoppedBy(p *kueue.StopPolicy) bool { return ptr.Deref(p, kueue.None) != kueue.None }

// giveBack releases the quota as the job does when its pods are gone.
func (m *model) giveBack() {
	if len(m.w.OwnerReferences) > 0 && workload.HoldsQuota(m.w) && !workload.IsFinished(m.w) {
		workload.GiveBack(m.w, m.now)
	}
}

// actions are the actions of other clients.
func (m *model) actions() map[string]func(*rapid.T) {
	policies := rapid.SampledFrom([]kueue.StopPolicy{kueue.None, kueue.Hold, kueue.HoldAndDrain})
	return map[string]func(*rapid.T){
		"activate or deactivate": func(t *rapid.T) {
			m.w.Spec.Active = ptr.To(rapid.Bool().Draw(t, "active"))
			m.w.Generation++
		},
		"stop or start a queue": func(t *rapid.T) {
			m.facts.LocalQueue.Spec.StopPolicy = ptr.To(policies.Draw(t, "LocalQueue"))
			m.facts.ClusterQueue.Spec.StopPolicy = ptr.To(policies.Draw(t, "ClusterQueue"))
		},
		"change the time limit of a queue": func(t *rapid.T) {
			limits := rapid.SampledFrom([]string{"", "1m", "30m", "2h", "soon"})
			m.facts.LocalQueue.Annotations = map[string]string{muster.MaxDurationAnnotation: limits.Draw(t, "LocalQueue")}
			m.facts.ClusterQueue.Annotations = map[string]string{muster.MaxDurationAnnotation: limits.Draw(t, "ClusterQueue")}
		},
		"change the checks of the queue": func(t *rapid.T) {
			m.facts.ClusterQueue.Spec.AdmissionChecks = rapid.SliceOfNDistinct(
				rapid.SampledFrom([]kueue.AdmissionCheckReference{"x", "y", "z"}), 0, 3, rapid.ID).Draw(t, "checks")
		},
		"set the state of a check": func(t *rapid.T) {
			if n := len(m.w.Status.AdmissionChecks); n > 0 && !workload.IsAdmitted(m.w) {
				c := &m.w.Status.AdmissionChecks[rapid.IntRange(0, n-1).Draw(t, "check")]
				c.State = rapid.SampledFrom([]kueue.CheckState{"Ready", "Ready", "Retry", "Rejected"}).Draw(t, "state")
				c.RequeueAfterSeconds = ptr.To(rapid.Int32Range(0, 600).Draw(t, "after"))
				c.LastTransitionTime = metav1.NewTime(m.now)
			}
		},
		"reset the state of a check": func(t *rapid.T) {
			if n := len(m.w.Status.AdmissionChecks); n > 0 {
				m.w.Status.AdmissionChecks[rapid.IntRange(0, n-1).Draw(t, "check")].State =
					rapid.SampledFrom([]kueue.CheckState{"Retry", "Rejected"}).Draw(t, "state")
			}
		},
		"admit": func(*rapid.T) { m.admit() },
		"preempt": func(*rapid.T) {
			if workload.HoldsQuota(m.w) && !workload.IsFinished(m.w) {
				workload.Evict(m.w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption}, m.now)
			}
		},
		"end the pods": func(*rapid.T) { m.giveBack() },
		"change the readiness of pods": func(t *rapid.T) {
			if workload.IsAdmitted(m.w) && !workload.IsEvicted(m.w) {
				reason := rapid.SampledFrom([]string{kueue.WorkloadStarted, kueue.WorkloadWaitForRecovery}).Draw(t, "reason")
				status := map[string]metav1.ConditionStatus{kueue.WorkloadStarted: metav1.ConditionTrue}[reason]
				workload.SetCondition(m.w, kueue.WorkloadPodsReady, ptr.Deref(ptr.To(status), metav1.ConditionFalse),
					reason, "", m.now)
			}
		},
		"move the clock": func(t *rapid.T) {
			m.now = m.now.Add(time.Duration(rapid.IntRange(-3600, 7200).Draw(t, "seconds")) * time.Second)
		},
		"end the job": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "ends at 0") == 0 {
				workload.SetCondition(m.w, kueue.WorkloadFinished, metav1.ConditionTrue,
					kueue.WorkloadFinishedReasonSucceeded, "", m.now)
			}
		},
		"take a step":    func(t *rapid.T) { m.step(t) },
		"take all steps": func(t *rapid.T) { m.rest(t) },
	}
}

// TestRandomLifecyclesStayConsistent: after any actions in any order the conditions agree, the Workload settles after
// few writes, and it runs once users, checks and queues permit it.
func TestRandomLifecyclesStayConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		actions := m.actions()
		for name, action := range actions {
			actions[name] = func(t *rapid.T) {
				if m.gone {
					return
				}
				action(t)
			}
		}
		t.Repeat(actions)
		m.policy = lifecycle.Policy{}
		m.w.Spec.MaximumExecutionTimeSeconds = nil
		m.facts = open()
		for range 10 {
			if m.gone || workload.IsFinished(m.w) || workload.IsAdmitted(m.w) && !workload.IsEvicted(m.w) {
				return
			}
			m.w.Spec.Active = ptr.To(true)
			m.rest(t)
			m.giveBack()
			m.rest(t)
			m.admit()
			m.rest(t)
			m.now = m.now.Add(24 * time.Hour)
		}
		t.Fatalf("the Workload never runs; conditions: %v, requeueState %v", m.w.Status.Conditions, m.w.Status.RequeueState)
	})
}

// TestARestartBetweenStepsChangesNothing: the next step depends only on what is stored, so that any number of operators
// may take the steps.
func TestARestartBetweenStepsChangesNothing(t *testing.T) {
	for name, w := range map[string]builder{
		"deactivated": admitted().bare().inactive(),
		"rejected":    admitted().bare().check("x", kueue.CheckStateRejected),
		"retried":     admitted().bare().check("x", kueue.CheckStateRetry).retryAfter(30),
		"too late":    admitted().bare().is(kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForRecovery),
	} {
		t.Run(name, func(t *testing.T) {
			run := func(through func(*kueue.Workload) *kueue.Workload) (*kueue.Workload, string) {
				w, writes := w.Workload, ""
				for range stepsMax {
					step := lifecycle.Next(w, open(), policy, began.Add(time.Hour))
					switch {
					case step.Status != nil:
						w, writes = through(step.Status), writes+" status"
					case step.Object != nil:
						w, writes = through(step.Object), writes+" object"
					default:
						return w, writes
					}
				}
				return nil, writes
			}
			one, writes := run(func(w *kueue.Workload) *kueue.Workload { return w })
			many, writesOfMany := run(stored)
			expect(t, "writes", writesOfMany, writes)
			if !equality.Semantic.DeepEqual(one, many) {
				t.Errorf("final states differ: %s", fmt.Sprint(cmp.Diff(one, many)))
			}
		})
	}
}
