package jobset

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs/write"
)

// applyFailurePolicy decides what follows from the failed Jobs: the end of the JobSet, or the restart of all Jobs or of
// the failed ones. Jobs that are restarted alone are handled one by one, each counted as a restart of its own, as if
// they had failed one by one.
func (p *planner) applyFailurePolicy() {
	var restarted []*batchv1.Job
	spent := restartsSpent(&p.js.Status)
	verdicts, unusable := judge(p.js.Spec.FailurePolicy, p.children.failed)
	if unusable != nil {
		p.plan.AddEvents(write.Warning(unusablePattern,
			fmt.Sprintf("The failure policy has a pattern that matches nothing: %v", unusable)))
	}
	for _, v := range verdicts {
		suffix := fmt.Sprintf(jobset.FirstFailedJobMessage, v.job.Name)
		switch {
		case v.action == "":
			p.status.fail(jobset.FailedJobsReason, jobset.FailedJobsMessage+suffix)
		case v.action == jobset.FailJobSet:
			p.status.fail(jobset.FailJobSetFailurePolicyActionReason, jobset.FailJobSetFailurePolicyActionMessage+suffix)
		case countsTowardsMax(v.action) && spent >= p.js.Spec.FailurePolicy.MaxRestarts:
			p.status.fail(jobset.ReachedMaxRestartsReason, jobset.ReachedMaxRestartsMessage+suffix)
		case p.status.restart(v, fmt.Sprintf(jobset.RestartFailurePolicyActionMessage, v.action)+suffix):
			restarted = append(restarted, v.job)
			if countsTowardsMax(v.action) {
				spent++
			}
			continue
		default:
			restarted = p.children.current()
		}
		break // it ends all Jobs, the failed ones too
	}
	if len(restarted) > 0 {
		// Done once for all of them: thousands of Jobs may fail together.
		p.children = p.children.without(restarted)
		p.status.countJobs()
	}
	if !hasOutcome(p.js) {
		p.deleteJobs(p.children.previous)
	}
}

// unusablePattern is the reason of the event that reports a pattern which is not compiled.
const unusablePattern = "UnusablePattern"

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
func (r *reporter) restart(v verdict, message string) (single bool) {
	single = r.countRestart(v)
	reason := jobset.DefaultFailurePolicyReason
	if v.rule != "" {
		reason = jobset.FailurePolicyReasonPrefix + v.rule
	}
	r.setCondition(jobset.JobSetRestarting, metav1.ConditionTrue, reason, message, corev1.EventTypeWarning)
	r.plan.AddEvents(write.Warning(eventReasons[v.action], message))
	r.plan.StatusFirst = true
	return single
}

// countRestart counts a restart, and reports whether it is of the failed Job alone or of the whole JobSet.
func (r *reporter) countRestart(v verdict) (single bool) {
	status := &r.js.Status
	if restartsSingleJob(v.action) {
		entry, index := r.entryOf(v.job)
		entry.JobRestarts = incremented(entry.JobRestarts, r.replicas(entry.Name), index)
		if countsTowardsMax(v.action) {
			entry.JobRestartsCountTowardsMax = incremented(entry.JobRestartsCountTowardsMax, r.replicas(entry.Name), index)
		}
		return true
	}
	status.Restarts++
	if countsTowardsMax(v.action) {
		status.RestartsCountTowardsMax++
	}
	return false
}

// entryOf returns the status entry and index where restarts of the Job, one of the children, are counted. Its name says
// which: users may have tampered with its labels.
func (r *reporter) entryOf(job *batchv1.Job) (*jobset.ReplicatedJobStatus, int32) {
	name, index, _ := splitJobName(r.js, job.Name)
	i := slices.IndexFunc(r.js.Status.ReplicatedJobsStatus,
		func(entry jobset.ReplicatedJobStatus) bool { return entry.Name == name })
	return &r.js.Status.ReplicatedJobsStatus[i], index // countJobs has made one for each
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
func (r *reporter) endRestart() {
	switch {
	case r.held():
		r.clearCondition(jobset.JobSetRestarting, jobset.RestartSuspendedReason, jobset.JobSetSuspendedMessage)
	case r.allReady():
		r.clearCondition(jobset.JobSetRestarting, jobset.JobsReadyReason, jobset.JobsReadyMessage)
	}
}
