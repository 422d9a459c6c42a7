package replicas

import corev1 "k8s.io/api/core/v1"

// RestartDisrupted returns the pods that were disrupted, for the caller to delete, and starts the attempts of their
// replicas again. This counts as no restart.
func (r *Roster) RestartDisrupted() []*corev1.Pod {
	var out []*corev1.Pod
	for i := range r.Replicas {
		if replica := &r.Replicas[i]; replica.Phase == Failed && replica.UID() != "" && Disrupted(replica.Pod) {
			replica.Phase, replica.NeedsRestart = Creating, false
			out = append(out, replica.Pod)
		}
	}
	return out
}

// Disrupted reports whether the pod has failed because of its node, or because it was preempted or evicted; that says
// nothing about its program.
func Disrupted(pod *corev1.Pod) bool {
	c := condition(pod, corev1.DisruptionTarget)
	return pod.Status.Phase == corev1.PodFailed && c != nil && c.Status == corev1.ConditionTrue
}
