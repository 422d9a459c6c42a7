package jobset

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// podsInPlace selects the pods of JobSets that restart in place: pods whose agent has reported an attempt.
var podsInPlace = &jobs.PodsOf[*jobset.JobSet]{
	Labels: func(js *jobset.JobSet) map[string]string {
		if !inPlace(js) || hasOutcome(js) {
			return nil
		}
		return map[string]string{jobset.JobSetUIDKey: string(js.UID)}
	},
	JobOf: func(pod *corev1.Pod) string {
		if _, hasAttempt := attemptOfPod(pod); !hasAttempt {
			return ""
		}
		return pod.Labels[jobset.JobSetNameKey]
	},
	Matters: func(before, after *corev1.Pod) bool {
		was, hadAttempt := attemptOfPod(before)
		is, hasAttempt := attemptOfPod(after)
		return hadAttempt != hasAttempt || was != is || replicas.IsLive(before) != replicas.IsLive(after) ||
			restartsOf(before) != restartsOf(after)
	},
}

// restartInPlace synchronizes the attempts of the pods of a JobSet that restarts in place, without recreating anything.
// The agent in each pod reports which attempt the pod is in: one more than the current attempt each time that it
// starts. Once all pods are in the same attempt, that becomes the current one, and the agents let their containers run.
// While they differ, the pods behind the most advanced one are told to restart. It reports whether the JobSet failed
// because its restarts are exhausted.
func (p *planner) restartInPlace() (exhausted bool) {
	if !inPlace(p.js) || p.held() {
		return false
	}
	pods := p.ownPods()
	attempts := attemptsOf(pods)
	if len(attempts) == 0 {
		return false
	}
	most := max(0, p.js.Spec.FailurePolicy.MaxRestarts)
	first, last := slices.Max(attempts), slices.Min(attempts)
	if first > most || slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return restartsOf(pod) > most }) {
		p.status.fail(jobset.ReachedMaxRestartsReason, jobset.ReachedMaxRestartsMessage)
		return true
	}
	status := &p.js.Status
	switch {
	case first == last && int32(len(attempts)) >= p.sizes.expectedPods():
		if first >= ptr.Deref(status.CurrentInPlaceRestartAttempt, 0) {
			status.CurrentInPlaceRestartAttempt = ptr.To(first)
		}
	case first > 0 && first-1 >= ptr.Deref(status.PreviousInPlaceRestartAttempt, 0):
		status.PreviousInPlaceRestartAttempt = ptr.To(first - 1)
	}
	return false
}

// resetAttempts resets the attempts for the pods that follow a suspension: no old pod is left, and an eviction is not
// a failure that counts as a restart.
func (r *reporter) resetAttempts() {
	r.js.Status.PreviousInPlaceRestartAttempt, r.js.Status.CurrentInPlaceRestartAttempt = nil, nil
}

// ownPods returns the pods that current Jobs control. Labels alone prove nothing: whoever creates a pod sets them.
func (v *view) ownPods() (out []*corev1.Pod) {
	current := map[types.UID]bool{}
	for _, job := range v.children.current() {
		current[job.UID] = true
	}
	for _, pod := range v.seen.Pods {
		if owner := metav1.GetControllerOf(pod); owner != nil && current[owner.UID] {
			out = append(out, pod)
		}
	}
	return out
}

// attemptsOf returns the attempts of the live pods.
func attemptsOf(pods []*corev1.Pod) (of []int32) {
	for _, pod := range pods {
		if attempt, hasAttempt := attemptOfPod(pod); hasAttempt && replicas.IsLive(pod) {
			of = append(of, attempt)
		}
	}
	return of
}

// expectedPods returns how many pods there are to be, as the Jobs say: a pod that has succeeded may be gone.
func (s *sizes) expectedPods() (sum int32) {
	for rj := range pointers.To(s.js.Spec.ReplicatedJobs) {
		pods, _ := s.podsToRun(rj)
		sum += pods
	}
	return sum
}

// attemptOfPod returns the attempt that the agent in the pod has reported, and whether it has.
func attemptOfPod(pod *corev1.Pod) (attempt int32, hasAttempt bool) {
	n, err := strconv.ParseInt(pod.Annotations[jobset.InPlaceRestartAttemptKey], 10, 32)
	return int32(n), err == nil && n >= 0
}

// restartsOf returns the highest restart count among the pod's containers.
func restartsOf(pod *corev1.Pod) (most int32) {
	for status := range podspec.Statuses(pod) {
		most = max(most, status.RestartCount)
	}
	return most
}
