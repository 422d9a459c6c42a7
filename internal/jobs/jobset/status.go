package jobset

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/workload"
)

// countJobs fills in status.replicatedJobsStatus: an entry for each replicated job from the first plan on, in
// descending order of names, as in the JobSet controller. Only Jobs of the current attempt are counted.
func (p *planner) countJobs() {
	entries := map[string]*jobset.ReplicatedJobStatus{}
	for _, rj := range p.js.Spec.ReplicatedJobs {
		entries[rj.Name] = &jobset.ReplicatedJobStatus{Name: rj.Name}
	}
	for _, old := range p.js.Status.ReplicatedJobsStatus {
		if entry := entries[old.Name]; entry != nil {
			entry.JobRestarts, entry.JobRestartsCountTowardsMax = old.JobRestarts, old.JobRestartsCountTowardsMax
		}
	}
	for _, job := range p.children.active {
		entry := entries[job.Labels[jobset.ReplicatedJobNameKey]]
		if entry == nil {
			continue
		}
		switch {
		case is(job, batchv1.JobFailureTarget): // its end is decided, though pods of it still terminate
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
	for _, job := range p.children.succeeded {
		if entry := entries[job.Labels[jobset.ReplicatedJobNameKey]]; entry != nil {
			entry.Succeeded++
		}
	}
	for _, job := range p.children.failed {
		if entry := entries[job.Labels[jobset.ReplicatedJobNameKey]]; entry != nil {
			entry.Failed++
		}
	}
	p.js.Status.ReplicatedJobsStatus = nil
	for _, entry := range entries {
		p.js.Status.ReplicatedJobsStatus = append(p.js.Status.ReplicatedJobsStatus, *entry)
	}
	slices.SortFunc(p.js.Status.ReplicatedJobsStatus, func(x, y jobset.ReplicatedJobStatus) int { return cmp.Compare(y.Name, x.Name) })
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
func (p *planner) counts(name string) jobset.ReplicatedJobStatus {
	i := slices.IndexFunc(p.js.Status.ReplicatedJobsStatus, func(s jobset.ReplicatedJobStatus) bool { return s.Name == name })
	if i < 0 {
		return jobset.ReplicatedJobStatus{}
	}
	return p.js.Status.ReplicatedJobsStatus[i]
}

// allReady reports whether every Job of the spec is ready or has succeeded.
func (p *planner) allReady() bool {
	for _, rj := range p.js.Spec.ReplicatedJobs {
		if c := p.counts(rj.Name); c.Ready+c.Succeeded < rj.Replicas {
			return false
		}
	}
	return true
}

// setCondition sets a condition, and adds an event if it changed. A condition that does not exist is not added as
// False.
func (p *planner) setCondition(kind jobset.JobSetConditionType, status metav1.ConditionStatus, reason, message, eventType string) {
	before, message := meta.FindStatusCondition(p.js.Status.Conditions, string(kind)), workload.Cut(message, workload.ConditionMessageBytes)
	if status == metav1.ConditionFalse && before == nil {
		return
	}
	if before != nil && before.Status == status && before.Reason == reason && before.Message == message {
		return
	}
	meta.SetStatusCondition(&p.js.Status.Conditions, metav1.Condition{
		Type: string(kind), Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(p.seen.Now),
	})
	p.plan.Events = append(p.plan.Events, jobs.Event{Type: eventType, Reason: reason, Message: message, WithStatus: true})
}

// clearCondition sets a condition that is True to False.
func (p *planner) clearCondition(kind jobset.JobSetConditionType, reason, message string) {
	if meta.IsStatusConditionTrue(p.js.Status.Conditions, string(kind)) {
		p.setCondition(kind, metav1.ConditionFalse, reason, message, corev1.EventTypeNormal)
	}
}

func finished(js *jobset.JobSet) bool { return outcome(js) != nil }

// outcome returns how the JobSet ended, nil if it has not.
func outcome(js *jobset.JobSet) *jobs.Outcome {
	if c := terminal(js); c != nil {
		return &jobs.Outcome{Succeeded: c.Type == string(jobset.JobSetCompleted), Message: c.Message}
	}
	return nil
}

// endedAt returns when a finished JobSet ended.
func endedAt(js *jobset.JobSet) time.Time { return terminal(js).LastTransitionTime.Time }

func terminal(js *jobset.JobSet) *metav1.Condition {
	for _, kind := range []jobset.JobSetConditionType{jobset.JobSetCompleted, jobset.JobSetFailed} {
		if c := meta.FindStatusCondition(js.Status.Conditions, string(kind)); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}
