package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/workload"
)

var (
	began  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	policy = lifecycle.Policy{PodsReady: &lifecycle.PodsReady{
		Timeout: 30 * time.Minute, RecoveryTimeout: 10 * time.Minute, BackoffBase: time.Minute,
	}, BackoffMax: time.Hour}
)

// builder builds Workloads by chained calls.
type builder struct{ *kueue.Workload }

// pending returns ns/a, a Workload of a job, in the queue q.
func pending() builder {
	return builder{&kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 1, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "job", Controller: ptr.To(true)}}},
		Spec: kueue.WorkloadSpec{QueueName: "q", Active: ptr.To(true)},
	}}
}

// reserved returns a Workload that holds quota of cq in the flavor f.
func reserved() builder {
	b := pending().is(kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReservedReason)
	b.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{
		{Name: "main", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "f"}}}}
	return b
}

func admitted() builder {
	return reserved().is(kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmittedReason)
}

// is sets a condition with the message "because", since the time began.
func (b builder) is(kind string, status metav1.ConditionStatus, reason string) builder {
	workload.SetCondition(b.Workload, kind, status, reason, "because", began)
	return b
}

func (b builder) evicted(reason string) builder {
	return b.is(kueue.WorkloadEvicted, metav1.ConditionTrue, reason)
}

// bare removes the owner.
func (b builder) bare() builder {
	b.OwnerReferences = nil
	return b
}

func (b builder) inactive() builder {
	b.Spec.Active = ptr.To(false)
	return b
}

func (b builder) check(name string, state kueue.CheckState) builder {
	b.Status.AdmissionChecks = append(b.Status.AdmissionChecks, kueue.AdmissionCheckState{
		Name: kueue.AdmissionCheckReference(name), State: state, Message: "says " + name,
		LastTransitionTime: metav1.NewTime(began)})
	return b
}

func (b builder) retryAfter(seconds int32) builder {
	b.Status.AdmissionChecks[len(b.Status.AdmissionChecks)-1].RequeueAfterSeconds = &seconds
	return b
}

func (b builder) requeueState(count int32, at time.Time) builder {
	b.Status.RequeueState = &kueue.RequeueState{}
	if count > 0 {
		b.Status.RequeueState.Count = &count
	}
	if !at.IsZero() {
		b.Status.RequeueState.RequeueAt = ptr.To(metav1.NewTime(at))
	}
	return b
}

func (b builder) with(change func(w *kueue.Workload)) builder {
	change(b.Workload)
	return b
}

// open returns queues that admit, without checks.
func open() lifecycle.Facts {
	return lifecycle.Facts{
		LocalQueue: &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q"},
			Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}},
		ClusterQueue: &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}},
	}
}

// checking returns queues with the checks, each for all flavors.
func checking(names ...kueue.AdmissionCheckReference) lifecycle.Facts {
	f := open()
	f.ClusterQueue.Spec.AdmissionChecks = names
	return f
}

func stopping(local, cluster kueue.StopPolicy) lifecycle.Facts {
	f := open()
	f.LocalQueue.Spec.StopPolicy, f.ClusterQueue.Spec.StopPolicy = &local, &cluster
	return f
}

// next returns the step at a time after began. It fails if Next modifies the Workload or the facts.
func next(t *testing.T, b builder, facts lifecycle.Facts, policy lifecycle.Policy, after time.Duration) lifecycle.Step {
	t.Helper()
	before := b.DeepCopy()
	step := lifecycle.Next(b.Workload, facts, policy, began.Add(after))
	if diff := cmp.Diff(before, b.Workload); diff != "" {
		t.Errorf("Next changed its arguments:\n%s", diff)
	}
	return step
}

// status returns the conditions of the step's status as "Type=Status Reason: message", nil if it writes none.
func status(step lifecycle.Step) []string {
	if step.Status == nil {
		return nil
	}
	var out []string
	for _, c := range step.Status.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	slices.Sort(out)
	return out
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// expectConditions checks that the step's status has the conditions.
func expectConditions(t *testing.T, step lifecycle.Step, want ...string) {
	t.Helper()
	got := status(step)
	for _, c := range want {
		if !slices.Contains(got, c) {
			t.Errorf("condition %q is missing in %q", c, got)
		}
	}
}

// expectDue checks that the step writes nothing, and when it is due.
func expectDue(t *testing.T, step lifecycle.Step, after time.Duration) {
	t.Helper()
	if step.Writes() {
		t.Errorf("step = %+v, want none", step)
	}
	if !step.Due.Equal(began.Add(after)) {
		t.Errorf("due %s after the start, want %s", step.Due.Sub(began), after)
	}
}

func TestNoStepNeeded(t *testing.T) {
	always := lifecycle.Policy{}
	for name, w := range map[string]builder{
		"waiting":                        pending(),
		"running":                        admitted(),
		"running without owner":          admitted().bare(),
		"evicted, with a job that stops": admitted().evicted(kueue.WorkloadEvictedByPreemption),
		"evicted, with a group of pods": admitted().evicted(kueue.WorkloadEvictedByPreemption).with(func(w *kueue.Workload) {
			w.OwnerReferences[0] = metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "pod"}
		}),
		"finished": admitted().is(kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded"),
		"finished and deactivated": admitted().inactive().is(kueue.WorkloadFinished,
			metav1.ConditionTrue, "Succeeded"),
		"being deleted": admitted().inactive().
			with(func(w *kueue.Workload) { w.DeletionTimestamp = ptr.To(metav1.NewTime(began)) }),
		"deactivated": pending().inactive().evicted(kueue.WorkloadDeactivated),
		"held back by another controller": pending().is(kueue.WorkloadRequeued, metav1.ConditionFalse,
			"AReasonOfAnotherController"),
		"admission set without quota": admitted().is(kueue.WorkloadQuotaReserved, metav1.ConditionFalse,
			"Pending").with(func(w *kueue.Workload) { w.Status.Conditions = w.Status.Conditions[:1] }),
	} {
		t.Run(name, func(t *testing.T) {
			if step := next(t, w, open(), always, 24*time.Hour); step.Writes() || !step.Due.IsZero() {
				t.Errorf("step = %+v, want none and no due time", step)
			}
		})
	}
}
