package vcjob

import (
	"fmt"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/replicas"
)

// hasOutcome reports whether the job has ended: its phase is final.
func hasOutcome(job *volcano.Job) bool {
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

// awaitsOutcome reports whether the job is about to end, and only waits for its pods to terminate.
func awaitsOutcome(job *volcano.Job) bool {
	return job.Status.State.Phase == volcano.Completing || job.Status.State.Phase == volcano.Terminating
}

// leadsToOutcome reports whether the phase is final, or followed by a final phase once the pods have terminated.
func leadsToOutcome(phase volcano.JobPhase) bool {
	switch phase {
	case volcano.Completing, volcano.Completed, volcano.Terminating, volcano.Terminated, volcano.Failed:
		return true
	}
	return false
}

// completeAtMinSuccess completes a job of which minSuccess pods have succeeded, and reports whether it did.
func (rep *reporter) completeAtMinSuccess() bool {
	want := rep.job.Spec.MinSuccess
	if want == nil || rep.count("", replicas.Succeeded) < *want {
		return false
	}
	rep.setPhase(volcano.Completed, "MinSuccess",
		fmt.Sprintf("succeeded pods: %d, required: %d", rep.count("", replicas.Succeeded), *want))
	return true
}

// setOutcomeWhenAllEnded ends a job whose pods have all ended, and reports whether it did. The job has
// succeeded if the minimum of all pods has, and that of each task if the tasks' minimums apply.
func (rep *reporter) setOutcomeWhenAllEnded() bool {
	succeeded := rep.count("", replicas.Succeeded)
	if task := rep.blockedTask(); task != "" {
		rep.setPhase(volcano.Failed, "DependencyFailed",
			rep.withFailure("task "+task+" depends on tasks that can no longer run"))
		return true
	}
	if total := totalOf(rep.job); total == 0 || succeeded+rep.count("", replicas.Failed) < total {
		return false
	}
	least := minAvailable(rep.job)
	if least >= tasksMinimum(rep.job) {
		for name, task := range tasksIn(rep.job) {
			if want := taskMinimum(task); rep.count(name, replicas.Succeeded) < want {
				rep.setPhase(volcano.Failed, "TooFewSucceeded",
					rep.withFailure(fmt.Sprintf("task %s: succeeded pods: %d, required: %d", name,
						rep.count(name, replicas.Succeeded), want)))
				return true
			}
		}
	}
	switch want := rep.job.Spec.MinSuccess; {
	case want != nil:
		rep.setPhase(volcano.Failed, "TooFewSucceeded",
			rep.withFailure(fmt.Sprintf("succeeded pods: %d, required: %d", succeeded, *want)))
	case succeeded >= least:
		rep.setPhase(volcano.Completed, "AllEnded", fmt.Sprintf("All pods have ended, %d with success", succeeded))
	default:
		rep.setPhase(volcano.Failed, "TooFewSucceeded",
			rep.withFailure(fmt.Sprintf("succeeded pods: %d, required: %d", succeeded, least)))
	}
	return true
}

// withFailure adds to the message how the first failed pod failed.
func (v *view) withFailure(message string) string {
	if r := v.roster.First(replicas.In(replicas.Failed)); r != nil {
		return message + ": " + failures.Of(r)
	}
	return message
}

// maxRetryMessage returns the message for a job without restarts left.
func (v *view) maxRetryMessage() string {
	return fmt.Sprintf("%s; retryCount is %d, the limit that maxRetry sets", v.job.Status.State.Message,
		v.job.Status.RetryCount)
}
