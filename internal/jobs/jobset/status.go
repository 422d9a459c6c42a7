package jobset

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// reporter brings the status of the JobSet up to date, with the events of what changes in it.
type reporter struct {
	*view
	plan *jobs.Plan
}

// countJobs fills in status.replicatedJobsStatus: an entry for each replicated job from the first plan on, in
// descending order of names, as in the JobSet controller. Only Jobs of the current attempt are counted.
func (r *reporter) countJobs() {
	entries := map[string]*jobset.ReplicatedJobStatus{}
	for _, rj := range r.js.Spec.ReplicatedJobs {
		entries[rj.Name] = &jobset.ReplicatedJobStatus{Name: rj.Name}
	}
	for _, old := range r.js.Status.ReplicatedJobsStatus {
		if entry := entries[old.Name]; entry != nil {
			entry.JobRestarts, entry.JobRestartsCountTowardsMax = old.JobRestarts, old.JobRestartsCountTowardsMax
		}
	}
	var dropped jobset.ReplicatedJobStatus // of Jobs that belong to no replicated Job
	entryOf := func(job *batchv1.Job) *jobset.ReplicatedJobStatus {
		return cmp.Or(entries[job.Labels[jobset.ReplicatedJobNameKey]], &dropped)
	}
	for _, job := range r.children.active {
		entry := entryOf(job)
		switch {
		case is(job, batchv1.JobFailureTarget): // its end is decided, though some of its pods still terminate
			entry.Failed++
			continue
		case isReady(job), is(job, batchv1.JobSuccessCriteriaMet):
			entry.Ready++
		}
		if job.Status.Active > 0 || is(job, batchv1.JobSuccessCriteriaMet) {
			entry.Active++
		}
		if suspended(job) {
			entry.Suspended++
		}
	}
	for _, job := range r.children.succeeded {
		entryOf(job).Succeeded++
	}
	for _, job := range r.children.failed {
		entryOf(job).Failed++
	}
	r.js.Status.ReplicatedJobsStatus = nil
	for _, entry := range entries {
		r.js.Status.ReplicatedJobsStatus = append(r.js.Status.ReplicatedJobsStatus, *entry)
	}
	slices.SortFunc(r.js.Status.ReplicatedJobsStatus,
		func(x, y jobset.ReplicatedJobStatus) int { return cmp.Compare(y.Name, x.Name) })
}

// sameButCounts reports whether the statuses differ at most in how many Jobs are in which state.
func sameButCounts(x, y *jobset.JobSetStatus) bool {
	uncounted := func(status *jobset.JobSetStatus) jobset.JobSetStatus {
		out := *status
		out.ReplicatedJobsStatus = nil
		for _, entry := range status.ReplicatedJobsStatus {
			if len(entry.JobRestarts) > 0 {
				out.ReplicatedJobsStatus = append(out.ReplicatedJobsStatus, jobset.ReplicatedJobStatus{
					Name: entry.Name, JobRestarts: entry.JobRestarts, JobRestartsCountTowardsMax: entry.JobRestartsCountTowardsMax})
			}
		}
		return out
	}
	return equality.Semantic.DeepEqual(uncounted(x), uncounted(y))
}

// counts returns the status entry of a replicated job.
func (v *view) counts(name string) jobset.ReplicatedJobStatus {
	i := slices.IndexFunc(v.js.Status.ReplicatedJobsStatus,
		func(s jobset.ReplicatedJobStatus) bool { return s.Name == name })
	if i < 0 {
		return jobset.ReplicatedJobStatus{}
	}
	return v.js.Status.ReplicatedJobsStatus[i]
}

// reportRefused says in a condition that the API server refuses what the JobSet needs, such as its Jobs. A new operator
// does not know yet what was refused: the condition stays until nothing is to be created any more.
func (r *reporter) reportRefused() {
	c := meta.FindStatusCondition(r.js.Status.Conditions, muster.CannotStartCondition)
	isCreation := func(w write.Write) bool { return w.Verb() == "create" }
	switch why := r.seen.RefusedObjects.Message(); {
	case why != "" && !r.held():
		r.setCondition(muster.CannotStartCondition, metav1.ConditionTrue, muster.RefusedReason, why, corev1.EventTypeWarning)
	case c == nil || c.Reason != muster.RefusedReason:
	case r.held() || !slices.ContainsFunc(slices.Concat(r.plan.First, r.plan.Writes), isCreation):
		r.clearCondition(muster.CannotStartCondition, muster.MayStartReason, muster.MayStartMessage)
	}
}

// setCondition sets a condition, and adds an event if it changed. A condition that does not exist is not added as
// False.
func (r *reporter) setCondition(kind jobset.JobSetConditionType, status metav1.ConditionStatus,
	reason, message, eventType string) {
	before, message := meta.FindStatusCondition(r.js.Status.Conditions, string(kind)),
		workload.Cut(message, workload.ConditionMessageBytes)
	if status == metav1.ConditionFalse && before == nil {
		return
	}
	if before != nil && before.Status == status && before.Reason == reason && before.Message == message {
		return
	}
	meta.SetStatusCondition(&r.js.Status.Conditions, metav1.Condition{
		Type: string(kind), Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(r.seen.Now),
	})
	r.plan.AddEvents(write.Event{Type: eventType, Reason: reason, Message: message, WithStatus: true})
}

// clearCondition sets a condition that is True to False.
func (r *reporter) clearCondition(kind jobset.JobSetConditionType, reason, message string) {
	if meta.IsStatusConditionTrue(r.js.Status.Conditions, string(kind)) {
		r.setCondition(kind, metav1.ConditionFalse, reason, message, corev1.EventTypeNormal)
	}
}
