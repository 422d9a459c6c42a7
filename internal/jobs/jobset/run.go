package jobset

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
)

// run brings a JobSet that has neither failed nor succeeded closer to its spec.
func (p *planner) run() {
	p.deleteJobs(p.children.previous)
	p.status.endRestart()
	p.status.warnOfNoSuccess()
	fit := p.status.canStart()
	switch {
	case p.held():
		p.hold()
	case p.seen.Admission.MayStart() && fit:
		excluded, due := p.gangs.excluded()
		p.deleteJobs(excluded)
		p.plan.DueBy(due)
		p.plan.AddFirst(p.gangs.ensure()...)
		p.resumeJobs()
		p.resizeJobs()
	}
	// A JobSet that waits in a queue gets nothing yet: its Jobs, Services and claims are created at its admission, for the
	// quota and places that it was given. A JobSet suspended by its user gets suspended Jobs.
	if p.seen.Admission.MayStart() {
		p.createServices()
		if p.createClaims() && fit {
			p.createJobs()
		}
	}
	if fit {
		p.status.reportRefused()
	}
}

// createJobs creates missing Jobs in the order of the spec, as far as dependencies and the startup policy allow. A Job
// is not created while one of an earlier attempt still has its name; under BlockingRecreate, none is created while any
// Job of an earlier attempt exists.
func (p *planner) createJobs() {
	if blocking(p.js) && len(p.children.previous) > 0 {
		return
	}
	for rj := range pointers.To(p.js.Spec.ReplicatedJobs) {
		if !p.dependenciesMet(rj) {
			continue
		}
		for index := range rj.Replicas {
			name := jobName(p.js, rj.Name, index)
			if p.children.byName[name] == nil && p.sizes.hasQuota(rj, name) &&
				!p.plan.CreateChild(p.newJob(rj, index), jobset.JobCreationFailedReason) {
				return
			}
		}
		if p.status.waitsInOrder(rj) {
			return
		}
	}
	p.status.endStartup()
}

func blocking(js *jobset.JobSet) bool {
	policy := js.Spec.FailurePolicy
	return policy != nil && policy.RestartStrategy == jobset.BlockingRecreate
}

// resumeJobs resumes suspended Jobs, in the order that dependencies and the startup policy require, with the pod
// templates that new Jobs would get: nothing of what an earlier admission added is left.
func (p *planner) resumeJobs() {
	p.moveJobs()
	for rj := range pointers.To(p.js.Spec.ReplicatedJobs) {
		if !p.dependenciesMet(rj) {
			continue
		}
		for index := range rj.Replicas {
			job := p.children.activeJob(jobName(p.js, rj.Name, index))
			if job == nil || !suspended(job) || !job.DeletionTimestamp.IsZero() {
				continue
			}
			if p.sizes.hasQuota(rj, job.Name) {
				fresh := p.newJob(rj, index)
				if p.isSettled(rj, job) {
					fresh.Spec.Completions = job.Spec.Completions
				}
				p.resume(job, fresh)
			}
		}
		if p.status.waitsInOrder(rj) {
			return
		}
	}
	p.status.clearCondition(jobset.JobSetSuspended, jobset.JobSetResumedReason, jobset.JobSetResumedMessage)
}

// The event for a user whose running Job was given other nodes.
const (
	movedReason        = "Moved"
	movedMessage       = "The pods of Job %s are stopped and started again: it was given other nodes, and its pod template names its previous ones"
	movedDomainMessage = "The pods of Job %s are stopped and started again: its pod template selects nodes with %s=%s, and the nodes it was given have %s"
)

// moveJobs moves the running Jobs that must be, whatever other Jobs are waited for.
func (p *planner) moveJobs() {
	for rj := range pointers.To(p.js.Spec.ReplicatedJobs) {
		for index := range rj.Replicas {
			p.move(rj, index, p.children.activeJob(jobName(p.js, rj.Name, index)))
		}
	}
}

// move stops a running Job whose pod template does not lead to its nodes any more, since a repair gave it others. The
// template can only be changed while the Job has no pods; then it is resumed. job may be nil.
//
// A Job all of whose pods are ready needs no other domain: a repair changes that only when no pod is left, so someone
// has renamed the domain under running pods. Once one of them is lost, its replacement would find no node there.
func (p *planner) move(rj *jobset.ReplicatedJob, index int32, job *batchv1.Job) {
	granted, ok := p.seen.Admission.PodSets[rj.Name]
	if job == nil || !ok || suspended(job) || !job.DeletionTimestamp.IsZero() {
		return
	}
	if exclusionOf(p.js, rj).manual {
		return
	}
	message := fmt.Sprintf(movedMessage, job.Name)
	if p.layouts.of(rj, granted).part(index).Reached(job.Spec.Template) {
		label, selected, is := p.layouts.otherDomain(rj, index, job.Spec.Template, granted)
		if label == "" || ptr.Deref(job.Status.Ready, 0) >= jobs.PodsLeft(job) {
			return
		}
		message = fmt.Sprintf(movedDomainMessage, job.Name, label, selected, is)
	}
	p.plan.Add(jobs.Stop(job, write.Warning(movedReason, message)))
	p.moved[job.Name] = true
}

// resume resumes a suspended Job with the template that a new Job would get. If the template changes, it waits until
// the pods of the old one are gone. API servers before 1.36 allow the change only if status.startTime is not set, and
// require the Job's owner to reset it; later ones reset it themselves.
func (p *planner) resume(job, fresh *batchv1.Job) {
	desired := resumed(job, fresh)
	if most := ptr.Deref(fresh.Spec.Parallelism, 1); p.seen.Admission.Grant == jobs.Admitted &&
		ptr.Deref(desired.Spec.Parallelism, 1) > most {
		desired.Spec.Parallelism = ptr.To(most) // as in resizeJobs
	}
	switch {
	case !samePodAffinity(job.Spec.Template.Spec, fresh.Spec.Template.Spec), p.gangs.leaves(job, fresh),
		asksForMore(job, fresh):
		// These changes of the template are not allowed even while the Job is suspended, or show that someone made its
		// pods ask for more than the JobSet does.
		p.deleteJobs([]*batchv1.Job{job})
	case equality.Semantic.DeepEqual(job.Spec.Template, desired.Spec.Template):
		p.plan.Add(write.Change(job, desired))
	case !jobs.HasNoPods(job):
		// The Job controller reports when they are gone.
	case job.Status.StartTime != nil:
		unstarted := job.DeepCopy()
		unstarted.Status.StartTime = nil
		p.plan.Add(write.ChangeStatus(job, unstarted))
	default:
		p.plan.Add(write.Change(job, desired))
	}
}

// asksForMore reports whether pods of the Job request more of any resource than the pods of a new Job would. Requesting
// less is tolerated: it may come from a mutating webhook, which would do the same again.
func asksForMore(job, fresh *batchv1.Job) bool {
	granted := podspec.Requests(fresh.Spec.Template.Spec)
	for resource, amount := range podspec.Requests(job.Spec.Template.Spec) {
		if amount.Cmp(granted[resource]) > 0 {
			return true
		}
	}
	return false
}

// resumed returns the Job, no longer suspended, with the parts of the fresh pod template that may change while a Job is
// suspended.
func resumed(job, fresh *batchv1.Job) *batchv1.Job {
	out := job.DeepCopy()
	out.Spec.Suspend = ptr.To(false)
	if mark, queued := fresh.Annotations[muster.QueuedAnnotation]; queued {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, muster.QueuedAnnotation, mark)
	}
	if elastic(&fresh.Spec) {
		out.Spec.Parallelism, out.Spec.Completions = fresh.Spec.Parallelism, fresh.Spec.Completions
	}
	to, from := &out.Spec.Template, &fresh.Spec.Template
	to.Labels, to.Annotations = keepJobControllerKeys(to.Labels, from.Labels), from.Annotations
	to.Spec.NodeSelector = from.Spec.NodeSelector
	to.Spec.SchedulingGates = from.Spec.SchedulingGates
	to.Spec.Affinity = withNodeAffinity(to.Spec.Affinity, from.Spec.Affinity)
	if !equality.Semantic.DeepEqual(to.Spec.Tolerations, from.Spec.Tolerations) {
		to.Spec.Tolerations = from.Spec.Tolerations
	}
	return out
}

// withNodeAffinity returns the affinity with the node affinity of wanted. All else in an affinity is immutable.
func withNodeAffinity(had, wanted *corev1.Affinity) *corev1.Affinity {
	nodes := ptr.Deref(wanted, corev1.Affinity{}).NodeAffinity
	if had == nil && nodes == nil {
		return nil
	}
	out := ptr.Deref(had, corev1.Affinity{})
	if out.NodeAffinity = nodes; out == (corev1.Affinity{}) && wanted == nil {
		return nil
	}
	return &out
}

// jobControllerKeys are labels that the API server sets on the pod template of every Job.
var jobControllerKeys = []string{
	batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name",
}

func keepJobControllerKeys(had, wanted map[string]string) map[string]string {
	keep := map[string]string{}
	for _, key := range jobControllerKeys {
		if value, ok := had[key]; ok {
			keep[key] = value
		}
	}
	return podspec.Merged(wanted, keep)
}

// The event for a user whose Jobs can only grow once they get more quota.
const (
	growthWaitsReason  = "ResizeWaitsForQuota"
	growthWaitsMessage = "Jobs of %s have quota for %d pods each, not %d: they grow at the next admission;" +
		" to grow them now, set spec.active of the JobSet's Workload to false and then to true"
)

// resizeJobs resizes running Jobs to the size that the spec asks for now; suspended Jobs are resized when they are
// resumed. A Job of a fixed size is limited to the parallelism that it has quota for, whatever was set on the Job
// itself.
func (p *planner) resizeJobs() {
	sizes, most, resizable := map[string]int32{}, map[string]int32{}, map[string]*jobset.ReplicatedJob{}
	for rj := range pointers.To(p.js.Spec.ReplicatedJobs) {
		if !elastic(&rj.Template.Spec) {
			if p.seen.Admission.Grant == jobs.Admitted {
				most[rj.Name] = ptr.Deref(rj.Template.Spec.Parallelism, 1)
			}
			continue
		}
		size, wanted := p.sizes.of(rj), jobs.PodsAtATime(&rj.Template.Spec)
		sizes[rj.Name], resizable[rj.Name] = size, rj
		if size < wanted && !boundsOf(p.js, rj).Elastic {
			p.plan.AddEvents(write.Obstacle(growthWaitsReason, fmt.Sprintf(growthWaitsMessage, rj.Name, size, wanted)))
		}
	}
	for _, job := range p.children.active {
		if p.moved[job.Name] || suspended(job) || !job.DeletionTimestamp.IsZero() {
			continue
		}
		name := job.Labels[jobset.ReplicatedJobNameKey]
		if parallelism, isFixed := most[name]; isFixed && ptr.Deref(job.Spec.Parallelism, parallelism) > parallelism {
			fewer := job.DeepCopy()
			fewer.Spec.Parallelism = ptr.To(parallelism)
			p.plan.Add(write.Change(job, fewer))
		}
		size, ok := sizes[name]
		if !ok || ptr.Deref(job.Spec.Parallelism, size) == size {
			continue
		}
		resized := job.DeepCopy()
		resized.Spec.Parallelism = ptr.To(size)
		if !p.isSettled(resizable[name], job) {
			resized.Spec.Completions = ptr.To(size)
		}
		change := write.Change(job, resized)
		if p.seen.Admission.HoldsQuota() && size < jobs.PodsAtATime(&job.Spec) {
			change = jobs.Shrink(job, resized)
		}
		p.plan.Add(change)
	}
}
