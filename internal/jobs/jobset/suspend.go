package jobset

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// held reports whether no pods may run: a queue says so, or, where none has a say,
// the user.
func (a *attempt) held() bool {
	if a.seen.Admission.Grant == jobs.Unqueued {
		return ptr.Deref(a.js.Spec.Suspend, false)
	}
	return !a.seen.Admission.MayRun()
}

// What a user is told whose change of spec.suspend is taken back.
const (
	queueDecidesReason  = "QueueDecides"
	queueDecidesMessage = "spec.suspend is false again: the queue decides when this JobSet runs; to hold it, set spec.active of its Workload to false"
)

// takesOverSuspend reports whether spec.suspend of an admitted JobSet is still true.
// In a queue it is the queue's to say, and who looks at the field should see that
// the JobSet runs.
func (a *attempt) takesOverSuspend() bool {
	return a.seen.Admission.Grant == jobs.Admitted && ptr.Deref(a.seen.Job.Spec.Suspend, false)
}

// takeOverSuspend sets spec.suspend to false. All else waits for the next look: the
// status could not be written over this change.
func (a *attempt) takeOverSuspend() {
	resumed := a.seen.Job.DeepCopy()
	resumed.Spec.Suspend = ptr.To(false)
	change := jobs.Change(a.seen.Job, resumed)
	if len(a.children.all()) > 0 { // it ran already, so this is not how it was created
		change = change.AndTell(jobs.Warning(queueDecidesReason, queueDecidesMessage))
	}
	a.plan.Writes = append(a.plan.Writes, change)
}

// suspendJobs suspends what runs, and says so.
func (a *attempt) suspendJobs() {
	for _, job := range a.children.active {
		if suspended(job) || !job.DeletionTimestamp.IsZero() {
			continue
		}
		stopped := job.DeepCopy()
		stopped.Spec.Suspend = ptr.To(true)
		a.plan.Writes = append(a.plan.Writes, jobs.Change(job, stopped))
	}
	a.set(jobset.JobSetSuspended, metav1.ConditionTrue, jobset.JobSetSuspendedReason, jobset.JobSetSuspendedMessage, corev1.EventTypeNormal)
}

// resumeJobs resumes suspended Jobs, in the order that the policies of start ask
// for, with pod templates as they would be created now: nothing is left of what an
// earlier admission added.
func (a *attempt) resumeJobs() {
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		if !a.dependenciesMet(rj) {
			continue
		}
		for index := range rj.Replicas {
			job := a.children.activeJob(jobName(a.js, rj.Name, index))
			if job == nil || !suspended(job) || !job.DeletionTimestamp.IsZero() {
				a.move(rj, index, job)
				continue
			}
			a.resume(job, a.newJob(rj, index))
		}
		if a.waitsInOrder(rj) {
			return
		}
	}
	a.turnOff(jobset.JobSetSuspended, jobset.JobSetResumedReason, jobset.JobSetResumedMessage)
}

// What a user is told whose Job was given other nodes while it runs.
const (
	movedReason  = "Moved"
	movedMessage = "The pods of Job %s are stopped and started again: it was given other nodes, and its pod template names those that it had"
)

// move stops a Job that runs, nil if there is none, and whose template does not lead to
// the nodes that it has now, since a repair gave it others. The template can only change
// while there are no pods; then it is resumed.
func (a *attempt) move(rj *jobset.ReplicatedJob, index int32, job *batchv1.Job) {
	granted, ok := a.seen.Admission.PodSets[rj.Name]
	if job == nil || !ok || suspended(job) || !job.DeletionTimestamp.IsZero() {
		return
	}
	if from, to := a.rowOf(rj, granted).ranks(index); exclusionOf(a.js, rj).byHand ||
		granted.Reaches(job.Spec.Template, from, to) && a.inItsDomain(rj, index, job.Spec.Template, granted) {
		return
	}
	stopped := job.DeepCopy()
	stopped.Spec.Suspend = ptr.To(true)
	a.plan.Writes = append(a.plan.Writes, jobs.Change(job, stopped).AndTell(jobs.Warning(movedReason, fmt.Sprintf(movedMessage, job.Name))))
	a.moved[job.Name] = true
}

// resume starts a suspended Job as it would be created now. A template that changes must
// wait until the pods of the old one are gone. API servers before 1.36 let it change only
// of a Job that seems never to have started, and leave it to us to make it seem so;
// later ones do that themselves.
func (a *attempt) resume(job, fresh *batchv1.Job) {
	desired := resumed(job, fresh)
	if most := ptr.Deref(fresh.Spec.Parallelism, 1); a.seen.Admission.Grant == jobs.Admitted && ptr.Deref(desired.Spec.Parallelism, 1) > most {
		desired.Spec.Parallelism = ptr.To(most) // see resizeJobs
	}
	switch {
	case !sameCompany(job.Spec.Template.Spec, fresh.Spec.Template.Spec), a.leavesGang(job, fresh), asksForMore(job, fresh):
		// Such as one that was placed, and now is not, or whose pods somebody had ask for more than the JobSet does: no change of
		// it will do.
		a.deleteJobs([]*batchv1.Job{job})
	case equality.Semantic.DeepEqual(job.Spec.Template, desired.Spec.Template):
		a.plan.Writes = append(a.plan.Writes, jobs.Change(job, desired))
	case job.Status.Active > 0:
		// The Job says when they are gone.
	case job.Status.StartTime != nil:
		unstarted := job.DeepCopy()
		unstarted.Status.StartTime = nil
		a.plan.Writes = append(a.plan.Writes, jobs.ChangeStatus(job, unstarted))
	default:
		a.plan.Writes = append(a.plan.Writes, jobs.Change(job, desired))
	}
}

// asksForMore reports whether pods of the Job ask for more of anything than they would if it were created now. What asks for less may
// be so because of somebody who changes all Jobs as they are made, and would do that again.
func asksForMore(job, fresh *batchv1.Job) bool {
	granted := podspec.Requests(fresh.Spec.Template.Spec)
	for resource, amount := range podspec.Requests(job.Spec.Template.Spec) {
		if amount.Cmp(granted[resource]) > 0 {
			return true
		}
	}
	return false
}

// resumed is the Job, no longer suspended, with the parts of the pod template that
// may change while a Job is suspended.
func resumed(job, fresh *batchv1.Job) *batchv1.Job {
	out := job.DeepCopy()
	out.Spec.Suspend = ptr.To(false)
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

// withNodeAffinity is the affinity with the other's way to choose nodes. All else about
// it can never change.
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

// jobControllerKeys are labels that the API server gives the pods of every Job.
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
	return with(wanted, keep)
}
