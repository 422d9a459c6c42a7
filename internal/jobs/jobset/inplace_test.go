package jobset

import (
	"fmt"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// podIn returns a pod of the Job with this UID that has reported the attempt; -1 for none yet.
func podIn(job string, attempt int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
		OwnerReferences: []metav1.OwnerReference{{UID: types.UID(job), Controller: ptr.To(true)}}}}
	if attempt >= 0 {
		pod.Annotations = map[string]string{jobset.InPlaceRestartAttemptKey: strconv.Itoa(attempt)}
	}
	return pod
}

func TestRestartInPlace(t *testing.T) {
	ended := func(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod { pod.Status.Phase = phase; return pod }
	restarted := func(pod *corev1.Pod, times int32) *corev1.Pod {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a"}, {Name: "b", RestartCount: times}}
		return pod
	}
	for name, tc := range map[string]struct {
		previous, current *int32
		pods              []*corev1.Pod
		wantPrevious      *int32
		wantCurrent       *int32
		failed            bool
	}{
		"no attempts yet": {nil, nil,
			[]*corev1.Pod{podIn("j0", -1), podIn("j1", -1), podIn("j2", -1)}, nil, nil, false},
		"some started": {nil, nil,
			[]*corev1.Pod{podIn("j0", 0), podIn("j1", 0), podIn("j2", -1)}, nil, nil, false},
		"all started, which may run": {nil, nil,
			[]*corev1.Pod{podIn("j0", 0), podIn("j1", 0), podIn("j2", 0)}, nil, ptr.To[int32](0), false},
		"one restarted, which the others must follow": {nil, ptr.To[int32](0),
			[]*corev1.Pod{podIn("j0", 0), podIn("j1", 1), podIn("j2", 0)}, ptr.To[int32](0), ptr.To[int32](0), false},
		"some followed": {ptr.To[int32](0), ptr.To[int32](0),
			[]*corev1.Pod{podIn("j0", 1), podIn("j1", 1), podIn("j2", 0)}, ptr.To[int32](0), ptr.To[int32](0), false},
		"all followed, which may run": {ptr.To[int32](0), ptr.To[int32](0),
			[]*corev1.Pod{podIn("j0", 1), podIn("j1", 1), podIn("j2", 1)}, ptr.To[int32](0), ptr.To[int32](1), false},
		"one restarted again": {ptr.To[int32](0), ptr.To[int32](1),
			[]*corev1.Pod{podIn("j0", 2), podIn("j1", 1), podIn("j2", 1)}, ptr.To[int32](1), ptr.To[int32](1), false},
		"one succeeded, which is not waited for": {nil, nil, []*corev1.Pod{podIn("j0", 0), podIn("j1", 0),
			ended(podIn("j2", 0), corev1.PodSucceeded)}, nil, ptr.To[int32](0), false},
		"one failed, whose replacement is waited for": {nil, nil,
			[]*corev1.Pod{podIn("j0", 0), podIn("j1", 0), ended(podIn("j2", 0), corev1.PodFailed)}, nil, nil, false},
		"pod of a former Job": {nil, nil,
			[]*corev1.Pod{podIn("j0", 0), podIn("j1", 0), podIn("gone", 0)}, nil, nil, false},
		"attempt beyond maxRestarts": {nil, ptr.To[int32](2),
			[]*corev1.Pod{podIn("j0", 3), podIn("j1", 2), podIn("j2", 2)}, nil, ptr.To[int32](2), true},
		"container restarted more often than maxRestarts": {nil, ptr.To[int32](0),
			[]*corev1.Pod{podIn("j0", 0), restarted(podIn("j1", 0), 3), podIn("j2", 0)}, nil, ptr.To[int32](0), true},
		"container of another Job's pod restarted": {nil, ptr.To[int32](0), []*corev1.Pod{podIn("j0", 0), podIn("j1", 0),
			podIn("j2", 0), restarted(podIn("gone", 0), 3)}, nil, ptr.To[int32](0), false},
		"container restarted as often as maxRestarts": {nil, ptr.To[int32](0),
			[]*corev1.Pod{podIn("j0", 0), restarted(podIn("j1", 0), 2), podIn("j2", 0)}, nil, ptr.To[int32](0), false},
		"invalid attempt": {nil, nil,
			[]*corev1.Pod{podIn("j0", 0), podIn("j1", 0), tampered(podIn("j2", 0))}, nil, nil, false},
		"attempts older than the previous one": {ptr.To[int32](1), ptr.To[int32](2),
			[]*corev1.Pod{podIn("j0", 1), podIn("j1", 0)}, ptr.To[int32](1), ptr.To[int32](2), false},
		"attempts older than the current one": {ptr.To[int32](1), ptr.To[int32](2),
			[]*corev1.Pod{podIn("j0", 1), podIn("j1", 1), podIn("j2", 1)}, ptr.To[int32](1), ptr.To[int32](2), false},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet().restarts(2, jobset.InPlaceRestart).js
			js.Status.PreviousInPlaceRestartAttempt, js.Status.CurrentInPlaceRestartAttempt = tc.previous, tc.current
			children := of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready())
			for i, child := range children[1:] {
				child.SetUID(types.UID(fmt.Sprintf("j%d", i)))
				if i < len(tc.pods) && tc.pods[i].Status.Phase == corev1.PodSucceeded {
					status := &child.(*batchv1.Job).Status
					status.Succeeded, status.CompletedIndexes = 1, "0"
				}
			}
			seen := seenOf(js, unqueued, children)
			seen.Pods = tc.pods
			p := plan(seen)
			s := statusOf(p)
			same(t, "previous", tc.wantPrevious, s.PreviousInPlaceRestartAttempt)
			same(t, "current", tc.wantCurrent, s.CurrentInPlaceRestartAttempt)
			var want []string
			if tc.failed {
				want = []string{"Failed=True ReachedMaxRestarts: jobset failed due to reaching max number of restarts"}
			}
			same(t, "conditions", want, conditions(p))
			same(t, "writes", nil, writes(p))
		})
	}
}

// TestRestartInPlaceWaitsOnlyForPodsThatCome: a pod that has succeeded may be deleted with its node, and a Job that is
// to be larger gets its new pods only with quota for them.
func TestRestartInPlaceWaitsOnlyForPodsThatCome(t *testing.T) {
	leader, workers := job("leader", 0).succeeded(), []jobBuilder{job("workers", 0).of(2), job("workers", 1).of(2)}
	workers[0].job.UID, workers[1].job.UID = "j0", "j1"
	workers[1].job.Status.Succeeded, workers[1].job.Status.CompletedIndexes = 1, "0"
	pods := []*corev1.Pod{podIn("j0", 1), podIn("j0", 1), podIn("j1", 1)}
	for name, tc := range map[string]struct {
		size      int32
		admission jobs.Admission
	}{
		"succeeded pods are deleted": {2, unqueued},
		"without quota to grow":      {3, quota(4, 4)},
	} {
		js := newSet().workersOf(tc.size).restarts(2, jobset.InPlaceRestart).js
		js.Status.PreviousInPlaceRestartAttempt, js.Status.CurrentInPlaceRestartAttempt = ptr.To[int32](0), ptr.To[int32](0)
		seen := seenOf(js, tc.admission, of(leader, workers[0], workers[1]))
		seen.Pods = pods
		if current := statusOf(plan(seen)).CurrentInPlaceRestartAttempt; *current != 1 {
			t.Errorf("%s: the current attempt is %d, want 1, in which all pods are", name, *current)
		}
		seen.Pods = pods[1:]
		if current := statusOf(plan(seen)).CurrentInPlaceRestartAttempt; *current != 0 {
			t.Errorf("%s: the current attempt is %d, want 0, as a pod is missing", name, *current)
		}
	}
}

// TestEvictionIsNoAttempt: once the JobSet is stopped, its pods count attempts from zero again.
func TestEvictionIsNoAttempt(t *testing.T) {
	js := newSet().restarts(2, jobset.InPlaceRestart).js
	js.Status.PreviousInPlaceRestartAttempt, js.Status.CurrentInPlaceRestartAttempt = ptr.To[int32](1), ptr.To[int32](2)
	s := statusOf(checkedPlan(t, js, stopping, of(job("leader", 0).ready())))
	if s.PreviousInPlaceRestartAttempt != nil || s.CurrentInPlaceRestartAttempt != nil {
		t.Errorf("previous attempt %v, current attempt %v, want none", s.PreviousInPlaceRestartAttempt,
			s.CurrentInPlaceRestartAttempt)
	}
}

// tampered gives the pod an attempt that is none.
func tampered(pod *corev1.Pod) *corev1.Pod {
	pod.Annotations[jobset.InPlaceRestartAttemptKey] = "-7"
	return pod
}

func TestOnlyPodsWithAnAttemptAreWatched(t *testing.T) {
	if got := podsInPlace.Labels(newSet().js); got != nil {
		t.Errorf("a JobSet that recreates its Jobs watches the pods %v, want none", got)
	}
	same(t, "labels", map[string]string{"jobset.sigs.k8s.io/jobset-uid": "js-uid"},
		podsInPlace.Labels(newSet().restarts(1, jobset.InPlaceRestart).js))
	pod := podIn("j0", 1)
	pod.Labels = map[string]string{jobset.JobSetNameKey: "js"}
	withoutAttempt := podIn("j0", -1)
	withoutAttempt.Labels = pod.Labels
	if podsInPlace.JobOf(pod) != "js" || podsInPlace.JobOf(withoutAttempt) != "" {
		t.Errorf("JobOf = %q for a pod with an attempt and %q for one without, want js and none", podsInPlace.JobOf(pod),
			podsInPlace.JobOf(withoutAttempt))
	}
	first := podIn("j0", 0)
	first.Labels = pod.Labels
	running := pod.DeepCopy()
	running.Status.PodIP = "10.0.0.1"
	if podsInPlace.Matters(pod, running) || !podsInPlace.Matters(withoutAttempt, pod) ||
		!podsInPlace.Matters(withoutAttempt, first) || !podsInPlace.Matters(first, pod) {
		t.Error("Matters is true for a new IP address, or false for a new attempt")
	}
}
