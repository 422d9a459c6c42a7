package jobset

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// applyFailurePolicy decides what follows from the failed Jobs: the end of the JobSet, or the restart of all Jobs or of
// the failed ones. Jobs that are restarted alone are handled one by one, each counted as a restart of its own, as if
// they had failed one after the other.
func (a *planner) applyFailurePolicy() {
	var over []*batchv1.Job
	failed := slices.Clone(a.children.failed)
	for len(failed) > 0 && !finished(a.js) {
		v := judge(a.js.Spec.FailurePolicy, failed)
		suffix := fmt.Sprintf(jobset.FirstFailedJobMessage, v.job.Name)
		switch {
		case v.action == "":
			a.fail(jobset.FailedJobsReason, jobset.FailedJobsMessage+suffix)
		case v.action == jobset.FailJobSet:
			a.fail(jobset.FailJobSetFailurePolicyActionReason, jobset.FailJobSetFailurePolicyActionMessage+suffix)
		case countsTowardsMax(v.action) && restartsSpent(&a.js.Status) >= a.js.Spec.FailurePolicy.MaxRestarts:
			a.fail(jobset.ReachedMaxRestartsReason, jobset.ReachedMaxRestartsMessage+suffix)
		case a.restart(v, fmt.Sprintf(jobset.RestartFailurePolicyActionMessage, v.action)+suffix):
			over = append(over, v.job)
			failed = slices.DeleteFunc(failed, func(job *batchv1.Job) bool { return job == v.job })
		default:
			over, failed = a.children.current(), nil
		}
	}
	if len(over) > 0 {
		// Done once for all of them: thousands of Jobs may fail together.
		a.children = a.children.without(over)
		a.countJobs()
	}
	if !finished(a.js) {
		a.deleteJobs(a.children.previous)
	}
}

// fail ends the JobSet as failed. The status is written first: the JobSet's quota goes to others, so it must never run
// again after that.
func (a *planner) fail(reason, message string) {
	a.plan.StatusFirst = true
	a.js.Status.TerminalState = string(jobset.JobSetFailed)
	a.setCondition(jobset.JobSetFailed, metav1.ConditionTrue, reason, message, corev1.EventTypeWarning)
	a.clearCondition(jobset.JobSetRestarting, jobset.RestartJobSetFailedReason, jobset.RestartJobSetFailedMessage)
}

// eventReasons holds the reasons of the events that report a restart.
var eventReasons = map[jobset.FailurePolicyAction]string{
	jobset.RestartJobSet:                     jobset.RestartJobSetFailurePolicyActionReason,
	jobset.RestartJobSetAndIgnoreMaxRestarts: jobset.RestartJobSetIgnoreMaxRestartsReason,
	jobset.RestartJob:                        jobset.RestartJobFailurePolicyActionReason,
	jobset.RestartJobAndIgnoreMaxRestarts:    jobset.RestartJobIgnoreMaxRestartsReason,
}

// restart starts a new attempt, and reports whether only the failed Job is restarted. The restart count is written
// first: it marks the existing Jobs as belonging to an earlier attempt, so that nothing is lost if they are not deleted
// at once.
func (a *planner) restart(v verdict, message string) (single bool) {
	single = a.countRestart(v)
	reason := jobset.DefaultFailurePolicyReason
	if v.rule != "" {
		reason = jobset.FailurePolicyReasonPrefix + v.rule
	}
	a.setCondition(jobset.JobSetRestarting, metav1.ConditionTrue, reason, message, corev1.EventTypeWarning)
	a.plan.Events = append(a.plan.Events, jobs.Warning(eventReasons[v.action], message))
	a.plan.StatusFirst = true
	return single
}

// countRestart counts a restart, and reports whether it is of the failed Job alone or of the whole JobSet.
func (a *planner) countRestart(v verdict) (single bool) {
	status := &a.js.Status
	if restartsSingleJob(v.action) {
		if entry, index := a.entryOf(v.job); entry != nil {
			entry.JobRestarts = incremented(entry.JobRestarts, a.replicas(entry.Name), index)
			if countsTowardsMax(v.action) {
				entry.JobRestartsCountTowardsMax = incremented(entry.JobRestartsCountTowardsMax, a.replicas(entry.Name), index)
			}
			return true
		}
	}
	status.Restarts++
	if countsTowardsMax(v.action) {
		status.RestartsCountTowardsMax++
	}
	return false
}

// entryOf returns the status entry and index where restarts of the Job are counted. The entry is nil if the Job does
// not belong to the spec because its labels were tampered with.
func (a *planner) entryOf(job *batchv1.Job) (*jobset.ReplicatedJobStatus, int32) {
	name := job.Labels[jobset.ReplicatedJobNameKey]
	index, ok := attemptOf(job, jobset.JobIndexKey)
	if !ok || index < 0 || index >= a.replicas(name) || jobName(a.js, name, index) != job.Name {
		return nil, 0
	}
	for i := range a.js.Status.ReplicatedJobsStatus {
		if entry := &a.js.Status.ReplicatedJobsStatus[i]; entry.Name == name {
			return entry, index
		}
	}
	return nil, 0
}

// incremented returns the counts, one for each Job, with that of index incremented. It extends counts if it is too
// short, and otherwise changes it in place.
func incremented(counts []int32, jobs, index int32) []int32 {
	if short := int(jobs) - len(counts); short > 0 {
		counts = append(counts, make([]int32, short)...)
	}
	counts[index]++
	return counts
}

// endRestart sets Restarting to False once all Jobs of the new attempt are ready, or the JobSet is held.
func (a *planner) endRestart() {
	switch {
	case a.held():
		a.clearCondition(jobset.JobSetRestarting, jobset.RestartSuspendedReason, jobset.JobSetSuspendedMessage)
	case a.allReady():
		a.clearCondition(jobset.JobSetRestarting, jobset.JobsReadyReason, jobset.JobsReadyMessage)
	}
}
