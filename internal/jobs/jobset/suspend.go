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
	"github.com/musterhq/muster/internal/podspec"
)

// held reports whether no pods may run: because the queue says so, or, for a JobSet without a queue, its user.
func (p *planner) held() bool {
	if p.seen.Admission.Grant == jobs.Unqueued {
		return ptr.Deref(p.js.Spec.Suspend, false)
	}
	return !p.seen.Admission.MayRun()
}

// The event for a user whose change of spec.suspend is reverted.
const (
	queueDecidesReason  = "QueueDecides"
	queueDecidesMessage = "spec.suspend is false again: the queue decides when this JobSet runs; to hold it, set spec.active of its Workload to false"
)

// mustClearSuspend reports whether spec.suspend of an admitted JobSet is still true. The queue decides about a queued
// JobSet, and the field should show that it runs.
func (p *planner) mustClearSuspend() bool {
	return p.seen.Admission.Grant == jobs.Admitted && ptr.Deref(p.seen.Job.Spec.Suspend, false)
}

// clearSuspend sets spec.suspend to false. All else is left to the next plan: a status write would conflict with
// this change.
func (p *planner) clearSuspend() {
	resumed := p.seen.Job.DeepCopy()
	resumed.Spec.Suspend = ptr.To(false)
	change := jobs.Change(p.seen.Job, resumed)
	if len(p.children.all()) > 0 { // it has run before, so spec.suspend was set later
		change = change.WithEvent(jobs.Warning(queueDecidesReason, queueDecidesMessage))
	}
	p.plan.Writes = append(p.plan.Writes, change)
}

// suspendJobs suspends running Jobs and sets the condition Suspended.
func (p *planner) suspendJobs() {
	for _, job := range p.children.active {
		if suspended(job) || !job.DeletionTimestamp.IsZero() {
			continue
		}
		stop := jobs.Stop(job, nil)
		if p.seen.Admission.Grant != jobs.Unqueued {
			stop = stop.Marked(muster.QueuedByOwner)
		}
		p.plan.Writes = append(p.plan.Writes, stop)
		if p.seen.Admission.Grant == jobs.Waiting && job.Annotations[muster.QueuedAnnotation] == muster.QueuedByOwner {
			p.plan.StartedUnheld = p.plan.StartedUnheld || jobs.Stops(p.plan.Writes, job)
		}
	}
	p.setCondition(jobset.JobSetSuspended, metav1.ConditionTrue, jobset.JobSetSuspendedReason, jobset.JobSetSuspendedMessage, corev1.EventTypeNormal)
}

// resumeJobs resumes suspended Jobs, in the order that dependencies and the startup policy require, with the pod
// templates that new Jobs would get: nothing of what an earlier admission added is left.
func (p *planner) resumeJobs() {
	for i := range p.js.Spec.ReplicatedJobs {
		rj := &p.js.Spec.ReplicatedJobs[i]
		if !p.dependenciesMet(rj) {
			continue
		}
		for index := range rj.Replicas {
			job := p.children.activeJob(jobName(p.js, rj.Name, index))
			if job == nil || !suspended(job) || !job.DeletionTimestamp.IsZero() {
				p.move(rj, index, job)
				continue
			}
			if p.hasRoom(rj, job.Name) {
				fresh := p.newJob(rj, index)
				if p.isSettled(rj, job) {
					fresh.Spec.Completions = job.Spec.Completions
				}
				p.resume(job, fresh)
			}
		}
		if p.waitsInOrder(rj) {
			return
		}
	}
	p.clearCondition(jobset.JobSetSuspended, jobset.JobSetResumedReason, jobset.JobSetResumedMessage)
}

// The event for a user whose running Job was given other nodes.
const (
	movedReason        = "Moved"
	movedMessage       = "The pods of Job %s are stopped and started again: it was given other nodes, and its pod template names its previous ones"
	movedDomainMessage = "The pods of Job %s are stopped and started again: its pod template selects nodes with %s=%s, and the nodes it was given have %s"
)

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
	said := fmt.Sprintf(movedMessage, job.Name)
	if p.layoutOf(rj, granted).part(index).Reached(job.Spec.Template) {
		label, selected, is := p.otherDomain(rj, index, job.Spec.Template, granted)
		if label == "" || ptr.Deref(job.Status.Ready, 0) >= jobs.PodsLeft(job) {
			return
		}
		said = fmt.Sprintf(movedDomainMessage, job.Name, label, selected, is)
	}
	p.plan.Writes = append(p.plan.Writes, jobs.Stop(job, ptr.To(jobs.Warning(movedReason, said))))
	p.moved[job.Name] = true
}

// resume resumes a suspended Job with the template that a new Job would get. If the template changes, it waits until
// the pods of the old one are gone. API servers before 1.36 allow the change only if status.startTime is not set, and
// require the Job's owner to reset it; later ones reset it themselves.
func (p *planner) resume(job, fresh *batchv1.Job) {
	desired := resumed(job, fresh)
	if most := ptr.Deref(fresh.Spec.Parallelism, 1); p.seen.Admission.Grant == jobs.Admitted && ptr.Deref(desired.Spec.Parallelism, 1) > most {
		desired.Spec.Parallelism = ptr.To(most) // as in resizeJobs
	}
	switch {
	case !samePodAffinity(job.Spec.Template.Spec, fresh.Spec.Template.Spec), p.leavesGang(job, fresh), asksForMore(job, fresh):
		// These changes of the template are not allowed even while the Job is suspended, or show that someone made its
		// pods ask for more than the JobSet does.
		p.deleteJobs([]*batchv1.Job{job})
	case equality.Semantic.DeepEqual(job.Spec.Template, desired.Spec.Template):
		p.plan.Writes = append(p.plan.Writes, jobs.Change(job, desired))
	case !jobs.HasNoPods(job):
		// The Job controller reports when they are gone.
	case job.Status.StartTime != nil:
		unstarted := job.DeepCopy()
		unstarted.Status.StartTime = nil
		p.plan.Writes = append(p.plan.Writes, jobs.ChangeStatus(job, unstarted))
	default:
		p.plan.Writes = append(p.plan.Writes, jobs.Change(job, desired))
	}
}

// asksForMore reports whether pods of the Job request more of any resource than those of a new Job would. Requesting
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

// resumed returns the Job, no longer suspended, with those parts of the fresh pod template that may change while a Job
// is suspended.
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

// withNodeAffinity returns the affinity with the node affinity of wanted. The other parts of an affinity are immutable.
func withNodeAffinity(had, wanted *corev1.Affinity) *corev1.Affinity {
	var nodes *corev1.NodeAffinity
	if wanted != nil {
		nodes = wanted.NodeAffinity
	}
	if had == nil && nodes == nil {
		return nil
	}
	out := &corev1.Affinity{NodeAffinity: nodes}
	if had != nil {
		out.PodAffinity, out.PodAntiAffinity = had.PodAffinity, had.PodAntiAffinity
	}
	if *out == (corev1.Affinity{}) && wanted == nil {
		return nil
	}
	return out
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
	return merged(wanted, keep)
}
