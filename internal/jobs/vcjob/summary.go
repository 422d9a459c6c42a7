package vcjob

import (
	"cmp"
	"strconv"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// Summary returns what lists of jobs say of a VCJob, with the counts of pods in its status.
func Summary(job *volcano.Job) jobs.Summary {
	s := jobs.Summary{Queue: cmp.Or(job.Labels[kueue.QueueLabel], queueOf(job)), SizeFromSpec: true}
	for name, task := range tasksIn(job) {
		s.Parts = append(s.Parts, jobs.SummaryPart{Name: kueue.PodSetReference(name), Pods: task.Replicas})
		s.Ask(task.Replicas, &task.Template)
	}
	status := &job.Status
	s.Active, s.Ready, s.Succeeded = status.Pending+status.Running, readyPods(status), status.Succeeded
	s.Restarts = status.RetryCount
	switch state := status.State; state.Phase {
	case volcano.Pending:
		s.Blocked = state.Message // if it has no Workload, it cannot be queued, and says why
	case volcano.Completed, volcano.Failed, volcano.Terminated:
		s.End(state.Phase == volcano.Completed, state.Reason, state.Message, state.LastTransitionTime)
	case volcano.Aborting, volcano.Aborted:
		s.Held = "aborted: a Command ResumeJob starts it again"
	case volcano.Restarting:
		s.Partial = "restarting: " + state.Message
	}
	return s
}

// readyPods returns how many pods are ready. Volcano, where that runs the job, records only how many run.
func readyPods(status *volcano.JobStatus) int32 {
	ready, err := strconv.ParseInt(status.ControlledResources[readyKey], 10, 32)
	if err != nil || ready < 0 {
		return status.Running
	}
	return min(int32(ready), status.Running)
}
