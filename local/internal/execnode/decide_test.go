package execnode

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestWorkerDecidesWhatIsMostUrgent(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	deleted := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now},
		DeletionGracePeriodSeconds: ptr.To[int64](7)}}
	running := view{phase: corev1.PodRunning, alive: true}
	with := func(v view, change func(*view)) view { change(&v); return v }
	for name, test := range map[string]struct {
		view view
		want decision
	}{
		"a new pod runs":              {view{phase: corev1.PodPending}, decision{action: toRun}},
		"a running pod is reconciled": {running, decision{action: toRun}},
		"a deleted pod is killed with its grace": {with(running, func(v *view) { v.pod = deleted }),
			decision{action: toKill, grace: ptr.To[int64](7)}},
		"a deleted pod without processes is finished": {view{pod: deleted, phase: corev1.PodFailed},
			decision{action: toFinish}},
		"a deleted pod that never ran is finished": {view{pod: deleted, phase: corev1.PodPending},
			decision{action: toFinish}},
		"a pod removed by force is killed at once": {with(running, func(v *view) { v.gone = true }),
			decision{action: toKill, grace: ptr.To[int64](0)}},
		"a pod that is gone, without processes, is forgotten": {view{gone: true, phase: corev1.PodRunning},
			decision{action: toForget}},
		"a completed pod loses its network": {view{phase: corev1.PodSucceeded, alive: true},
			decision{action: toKill}},
		"a completed pod is reported": {view{phase: corev1.PodFailed}, decision{action: toFinish}},
		"a reported pod rests": {view{phase: corev1.PodFailed, finished: true},
			decision{action: toRest}},
		"a reported pod that is gone is forgotten": {view{phase: corev1.PodFailed, finished: true, gone: true},
			decision{action: toForget}},
		"a pod with time left runs until then": {with(running,
			func(v *view) { v.deadline = now.Add(time.Minute) }), decision{action: toRun, wake: now.Add(time.Minute)}},
		"a pod past its time is killed": {with(running, func(v *view) { v.deadline = now }),
			decision{action: toKill, pastDeadline: true}},
		"a pod past its time without processes fails": {view{phase: corev1.PodPending, deadline: now},
			decision{action: toFinish, pastDeadline: true}},
		"a pod that cannot run fails": {view{phase: corev1.PodPending, refusal: &refusal{final: true}},
			decision{action: toFinish, refused: true}},
		"a pod that always restarts and cannot run waits": {view{phase: corev1.PodPending, refusal: &refusal{}},
			decision{action: toRefuse, refused: true}},
		"a deleted pod that cannot run is finished": {view{pod: deleted, phase: corev1.PodPending, refusal: &refusal{}},
			decision{action: toFinish}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.view.pod == nil {
				test.view.pod = &corev1.Pod{}
			}
			test.view.now = now
			got := decide(test.view)
			if got.action != test.want.action || ptr.Deref(got.grace, -1) != ptr.Deref(test.want.grace, -1) ||
				got.pastDeadline != test.want.pastDeadline || got.refused != test.want.refused || !got.wake.Equal(test.want.wake) {
				t.Errorf("decided %s %+v, want %s %+v", got.action, got, test.want.action, test.want)
			}
		})
	}
}

func TestDeadlineCountsFromTheStart(t *testing.T) {
	start := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	limited := &corev1.Pod{Spec: corev1.PodSpec{ActiveDeadlineSeconds: ptr.To[int64](30)}}
	if got := deadlineOf(limited, corev1.PodStatus{StartTime: &start}); !got.Equal(start.Add(30 * time.Second)) {
		t.Errorf("deadline = %v, want 30 s after the start", got)
	}
	if got := deadlineOf(limited, corev1.PodStatus{}); !got.IsZero() {
		t.Errorf("deadline of a pod that has not started = %v, want none", got)
	}
	if got := deadlineOf(&corev1.Pod{}, corev1.PodStatus{StartTime: &start}); !got.IsZero() {
		t.Errorf("deadline of a pod without a limit = %v, want none", got)
	}
}
