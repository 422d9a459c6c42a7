package trainingjob

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// restartPolicyOf returns what to do about a worker that has ended. With the agent, Always is OnFailure: a training
// that is done would be run again, and the job would never end.
func restartPolicyOf(job *breezeml.TrainingJob, agent lattice) breezeml.RestartPolicy {
	switch policy := job.Spec.ReplicaSpecs.RestartPolicy; {
	case policy == "":
		return breezeml.RestartNever
	case policy == breezeml.RestartAlways && agent.injected:
		return breezeml.RestartOnFailure
	default:
		return policy
	}
}

// isRetried reports whether a worker whose pod has failed is recreated.
func isRetried(policy breezeml.RestartPolicy, pod *corev1.Pod) bool {
	switch policy {
	case breezeml.RestartAlways, breezeml.RestartOnFailure:
		return true
	case breezeml.RestartExitCode:
		code, ended := exitCodeOf(pod)
		return !ended || code >= 128 // it never ran, or its program was ended by a signal
	}
	return false
}

// exitCodeOf returns the exit code of the training container, or of one that failed before it could start; false if no
// container has ended, as in a pod that its node has refused. Statuses are in the order of names, not in that of the
// containers, so the first is not that of the first container.
func exitCodeOf(pod *corev1.Pod) (code int32, ended bool) {
	training := trainingContainer(&pod.Spec)
	for _, c := range replicas.Containers(pod) {
		if training != nil && c.Name == training.Name && c.State == replicas.ContainerTerminated {
			return c.ExitCode, true
		}
	}
	code, _, ended = replicas.Failure(pod)
	return code, ended
}

// restartsInPlace returns how often containers of the pod were restarted on their node.
func restartsInPlace(pod *corev1.Pod) int64 {
	var n int64
	for container := range pointers.To(pod.Status.ContainerStatuses) {
		n += int64(container.RestartCount)
	}
	return n
}

// countRestart records the restart counts of a worker.
func (rep *reporter) countRestart(r *replicas.Replica) {
	s, key := &rep.job.Status, strconv.Itoa(int(r.Index))
	if s.Restarts == nil {
		s.Restarts = map[string]int32{}
	}
	s.Restarts[key] = r.Restarts
	if r.Settled == 0 {
		delete(s.SettledRestarts, key)
		return
	}
	if s.SettledRestarts == nil {
		s.SettledRestarts = map[string]int32{}
	}
	s.SettledRestarts[key] = r.Settled
}

// restartingMessage says how many workers are restarted, and how the first has failed.
func (v *view) restartingMessage(workers []replicas.Replica) string {
	return fmt.Sprintf(breezeml.RestartingMessage, v.job.Name, len(workers), failureOf(workers[0].Pod))
}

// failureOf describes how a pod has failed: by the exit code that decides whether it is retried, if it is one of a
// failure.
func failureOf(pod *corev1.Pod) string {
	code, why, ok := replicas.Failure(pod)
	if of, _ := exitCodeOf(pod); of != 0 && of != code {
		code = of
		if ok {
			why = "" // that of another container
		}
	}
	switch {
	case ok:
		return replicas.WithReason(fmt.Sprintf("exit code %d in %s", code, pod.Name), why)
	case !replicas.IsFinished(pod):
		return fmt.Sprintf("%d restarts of containers in %s", restartsInPlace(pod), pod.Name)
	}
	return fmt.Sprintf("%s: %s", pod.Name, why)
}
