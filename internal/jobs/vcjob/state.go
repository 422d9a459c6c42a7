package vcjob

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// mostConditions bounds the list of past phases: a job may be stopped and resumed any number of times.
const mostConditions = 64

// finished reports whether the job is in a final phase.
func finished(job *volcano.Job) bool {
	switch job.Status.State.Phase {
	case volcano.Completed, volcano.Failed, volcano.Terminated:
		return true
	}
	return false
}

// stopped reports whether the job is stopped until a Command resumes it; it needs no quota.
func stopped(job *volcano.Job) bool {
	return job.Status.State.Phase == volcano.Aborting || job.Status.State.Phase == volcano.Aborted
}

// ending reports whether the job is about to finish, and only waits for its pods to terminate.
func ending(job *volcano.Job) bool {
	return job.Status.State.Phase == volcano.Completing || job.Status.State.Phase == volcano.Terminating
}

// setPhase sets the phase of the job. The status is written before anything else, so that what follows from
// the phase is never done without it.
func (pl *planner) setPhase(phase volcano.JobPhase, reason, message string) {
	status, now := &pl.job.Status, metav1.NewTime(pl.seen.Now)
	if running := lastTime(status, volcano.Running); finishing(phase) && running != nil && status.RunningDuration == nil {
		status.RunningDuration = &metav1.Duration{Duration: pl.seen.Now.Sub(running.Time).Round(time.Second)}
	}
	status.State = volcano.JobState{Phase: phase, Reason: reason, Message: message, LastTransitionTime: now}
	status.Conditions = append(status.Conditions, volcano.JobCondition{Status: phase, LastTransitionTime: ptr.To(now)})
	if over := len(status.Conditions) - mostConditions; over > 0 {
		status.Conditions = status.Conditions[over:]
	}
	pl.plan.StatusFirst = true
	pl.recordPhase(phase, message)
}

// setDerivedPhase is setPhase for a phase that also follows from the pods, so that nothing needs to wait for the
// write.
func (pl *planner) setDerivedPhase(phase volcano.JobPhase, reason, message string) {
	first := pl.plan.StatusFirst
	pl.setPhase(phase, reason, message)
	pl.plan.StatusFirst = first
}

// recordPhase adds the event for a change of phase that users care about.
func (pl *planner) recordPhase(phase volcano.JobPhase, message string) {
	switch phase {
	case volcano.Failed, volcano.Terminated:
		pl.plan.Events = append(pl.plan.Events, jobs.Warning(string(phase), message))
	case volcano.Completed, volcano.Aborted:
		pl.plan.Events = append(pl.plan.Events, jobs.Normal(string(phase), message))
	}
}

func finishing(phase volcano.JobPhase) bool {
	switch phase {
	case volcano.Completing, volcano.Completed, volcano.Terminating, volcano.Terminated, volcano.Failed:
		return true
	}
	return false
}

// lastTime returns when the job last entered the phase, nil if it never did.
func lastTime(status *volcano.JobStatus, phase volcano.JobPhase) *metav1.Time {
	for i := len(status.Conditions) - 1; i >= 0; i-- {
		if c := &status.Conditions[i]; c.Status == phase {
			return c.LastTransitionTime
		}
	}
	return nil
}

// setPhaseOnceInactive sets the phase once none of the job's pods is active.
func (pl *planner) setPhaseOnceInactive(phase volcano.JobPhase, reason, message string) {
	if !pl.roster.Active() {
		pl.setPhase(phase, reason, message)
	}
}

// completeAtMinSuccess completes a job of which minSuccess pods have succeeded, and reports whether it did.
func (pl *planner) completeAtMinSuccess() bool {
	want := pl.job.Spec.MinSuccess
	if want == nil || pl.count("", replicas.Succeeded) < *want {
		return false
	}
	pl.setPhase(volcano.Completed, "MinSuccess", fmt.Sprintf("succeeded pods: %d, required: %d", pl.count("", replicas.Succeeded), *want))
	return true
}

// finishWhenAllEnded finishes a job whose pods have all finished, and reports whether it did. The job has
// succeeded if the minimum of all pods has, and that of each task if the tasks' minimums apply.
func (pl *planner) finishWhenAllEnded() bool {
	succeeded := pl.count("", replicas.Succeeded)
	if task := pl.blockedTask(); task != "" {
		pl.setPhase(volcano.Failed, "DependencyFailed", pl.withFailure("task "+task+" depends on tasks that can no longer run"))
		return true
	}
	if total := totalOf(pl.job); total == 0 || succeeded+pl.count("", replicas.Failed) < total {
		return false
	}
	least := minAvailable(pl.job)
	if least >= tasksMinimum(pl.job) {
		for i := range pl.job.Spec.Tasks {
			task, name := &pl.job.Spec.Tasks[i], nameOf(pl.job, i)
			if want := taskMinimum(task); pl.count(name, replicas.Succeeded) < want {
				pl.setPhase(volcano.Failed, "TooFewSucceeded", pl.withFailure(fmt.Sprintf("task %s: succeeded pods: %d, required: %d", name, pl.count(name, replicas.Succeeded), want)))
				return true
			}
		}
	}
	switch want := pl.job.Spec.MinSuccess; {
	case want != nil:
		pl.setPhase(volcano.Failed, "TooFewSucceeded", pl.withFailure(fmt.Sprintf("succeeded pods: %d, required: %d", succeeded, *want)))
	case succeeded >= least:
		pl.setPhase(volcano.Completed, "AllEnded", fmt.Sprintf("All pods have ended, %d with success", succeeded))
	default:
		pl.setPhase(volcano.Failed, "TooFewSucceeded", pl.withFailure(fmt.Sprintf("succeeded pods: %d, required: %d", succeeded, least)))
	}
	return true
}

// withFailure adds to the message how the first failed pod failed.
func (pl *planner) withFailure(message string) string {
	if r := pl.roster.First(func(r *replicas.Replica) bool { return r.Phase == replicas.Failed }); r != nil {
		return message + ": " + failures.Of(r)
	}
	return message
}

// maxRetryMessage returns the message for a job without restarts left.
func (pl *planner) maxRetryMessage() string {
	return fmt.Sprintf("%s; retryCount is %d, the limit that maxRetry sets", pl.job.Status.State.Message, pl.job.Status.RetryCount)
}

// waitingReason returns why a job has no quota.
func (pl *planner) waitingReason() (reason, message string) {
	if pl.seen.Mistake != "" {
		return jobs.InvalidJob, pl.seen.Mistake
	}
	if totalOf(pl.job) == 0 {
		return pl.startingState()
	}
	queue := pl.job.Labels[kueue.QueueLabel]
	if queue == "" {
		queue = queueOf(pl.job)
	}
	if why := pl.seen.Facts.Queues.NotFound(queue, pl.job.Namespace); why != "" {
		if said := pl.job.Status.State.Message; jobs.IsNotFoundMessage(said, queue, pl.job.Namespace) {
			why = said
		}
		return volcano.QueueNotFound, why
	}
	if why := pl.seen.Admission.Why; why != "" {
		return volcano.WaitingForQuota, why
	}
	return volcano.WaitingForQuota, "The job waits in queue " + queue
}

// failures are the words for how a pod has failed.
var failures = replicas.FailureTexts{
	Gone: "pod %s has failed and is gone", Lost: "pod %s has failed: %s", Failed: "pod %s has failed with exit code %d",
}

// restartsOf returns how often the kubelet restarted containers of the pod.
func restartsOf(pod *corev1.Pod) (n int32) {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			n += list[i].RestartCount
		}
	}
	return n
}

// unschedulableSince returns since when the pod is unschedulable, zero if it is not.
func unschedulableSince(pod *corev1.Pod) time.Time {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
