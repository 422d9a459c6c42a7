package replicas

import corev1 "k8s.io/api/core/v1"

// Lost has each replica whose pod was disrupted begin its attempt again, and gives these
// pods: they are to be deleted, and nothing counts.
func (r *Roster) Lost() []*corev1.Pod {
	var out []*corev1.Pod
	for i := range r.Replicas {
		if replica := &r.Replicas[i]; replica.Phase == Failed && replica.UID() != "" && Disrupted(replica.Pod) {
			replica.Phase, replica.Again = Creating, false
			out = append(out, replica.Pod)
		}
	}
	return out
}

// Disrupted reports whether the pod has failed for what befell its node, or because
// somebody needed its place: that says nothing of its program.
func Disrupted(pod *corev1.Pod) bool {
	c := condition(pod, corev1.DisruptionTarget)
	return pod.Status.Phase == corev1.PodFailed && c != nil && c.Status == corev1.ConditionTrue
}
