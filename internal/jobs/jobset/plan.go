package jobset

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// attempt is one look at a JobSet: what was seen, and what is planned so far.
type attempt struct {
	seen jobs.Seen[*jobset.JobSet]
	// js is a copy whose status becomes what it should be.
	js       *jobset.JobSet
	children children
	// podGroups are those among what was seen: who looks for one should not have to pass by all Jobs.
	podGroups []client.Object
	plan      jobs.Plan
	// moved are the names of Jobs that the plan stops because they were given other nodes.
	moved map[string]bool
	// gangs says of the replicated jobs that were asked about whether they are gangs.
	gangs map[string]bool
	// lacksGang says that a PodGroup is to be made, without which pods of its gang cannot be.
	lacksGang bool
	// rows are those of the replicated jobs that were asked about.
	rows map[string]row
}

func newAttempt(seen jobs.Seen[*jobset.JobSet]) *attempt {
	js := seen.Job.DeepCopy()
	a := &attempt{seen: seen, js: js, moved: map[string]bool{}, gangs: map[string]bool{}, rows: map[string]row{},
		children: sortChildren(jobs.ChildrenOf[*batchv1.Job](seen.Children), js)}
	for _, group := range jobs.ChildrenOf[*schedulingv1beta1.PodGroup](seen.Children) {
		a.podGroups = append(a.podGroups, group)
	}
	return a
}

// plan says what follows from what was seen of a JobSet.
func plan(seen jobs.Seen[*jobset.JobSet]) jobs.Plan {
	a := newAttempt(seen)
	js := a.js
	a.countJobs()
	a.plan.Status = a.js
	switch {
	case finished(js):
		a.afterTheEnd()
	case a.takesOverSuspend():
		a.takeOverSuspend()
		a.plan.Status = nil
	case len(a.children.failed) > 0:
		a.applyFailurePolicy()
	case a.succeeded():
		a.complete()
	case a.restartInPlace():
		// That was the end.
	default:
		a.carryOn()
	}
	a.plan.StatusCanWait = a.plan.Status != nil && (sameButCounts(&seen.Job.Status, &a.js.Status) || a.justQueued())
	a.plan.Progress = a.progress()
	return a.plan
}

// justQueued reports whether the JobSet has only come to its queue. Most are admitted at
// once, and then there is no use in having said that they wait.
func (a *attempt) justQueued() bool {
	return a.seen.Admission.Grant == jobs.Waiting && len(a.seen.Job.Status.ReplicatedJobsStatus) == 0 && len(a.seen.Children) == 0 && !finished(a.js) &&
		!meta.IsStatusConditionTrue(a.js.Status.Conditions, muster.CannotStartCondition)
}

// carryOn brings a JobSet that has neither failed nor succeeded closer to its spec.
func (a *attempt) carryOn() {
	a.deleteJobs(a.children.previous)
	a.noteRestartOver()
	fit := a.agentsFit()
	switch {
	case a.held():
		a.suspendJobs()
		a.forgetAttempts()
	case a.seen.Admission.MayStart() && fit:
		a.leaveKeptOut()
		a.keepGangs()
		a.resumeJobs()
		a.resizeJobs()
	}
	// A JobSet that waits in a queue gets nothing yet: what it needs is made when it
	// is admitted, with what it was given. One that its user suspended gets suspended
	// Jobs.
	if a.seen.Admission.MayStart() {
		a.createServices()
		if a.createClaims() && fit {
			a.createJobs()
		}
	}
}

// afterTheEnd removes what still runs, and in the end the JobSet itself if it has a
// time to live. Jobs that ended are kept for their logs.
func (a *attempt) afterTheEnd() {
	a.deleteJobs(a.children.previous)
	a.deleteJobs(a.children.active)
	a.removeExpired()
	if a.js.Spec.TTLSecondsAfterFinished == nil {
		return
	}
	due := endedAt(a.js).Add(time.Duration(*a.js.Spec.TTLSecondsAfterFinished) * time.Second)
	if a.seen.Now.Before(due) {
		a.plan.DueBy(due)
		return
	}
	a.plan.Writes = append(a.plan.Writes, jobs.Delete(a.seen.Job, metav1.DeletePropagationForeground))
}

// removeExpired removes ended Jobs whose template gives them a time to live, once that
// has passed since the JobSet's end.
func (a *attempt) removeExpired() {
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		ttl := rj.Template.Spec.TTLSecondsAfterFinished
		if ttl == nil {
			continue
		}
		due := endedAt(a.js).Add(time.Duration(*ttl) * time.Second)
		for _, job := range slices.Concat(a.children.succeeded, a.children.failed) {
			switch {
			case job.Labels[jobset.ReplicatedJobNameKey] != rj.Name || !job.DeletionTimestamp.IsZero():
			case a.seen.Now.Before(due):
				a.plan.DueBy(due)
			default:
				a.plan.Writes = append(a.plan.Writes, jobs.Delete(job, metav1.DeletePropagationBackground))
			}
		}
	}
}

// deleteJobs deletes Jobs and keeps their names taken until their pods are gone.
func (a *attempt) deleteJobs(list []*batchv1.Job) {
	for _, job := range list {
		if job.DeletionTimestamp.IsZero() {
			a.plan.Writes = append(a.plan.Writes, jobs.Delete(job, metav1.DeletePropagationForeground))
		}
	}
}

// progress is what the queue needs to know.
func (a *attempt) progress() jobs.Progress {
	p := jobs.Progress{Ready: a.enoughReady(), Reclaimable: a.reclaimable(), Pods: a.podsInUse(), Outcome: outcome(a.js)}
	if a.noteRefusals(&p); p.Refused == "" && p.Outcome == nil && !slices.ContainsFunc(a.children.active, runs) {
		p.Refused = a.cannotStart()
	}
	for _, job := range a.children.all() {
		if job.Status.Active > 0 || ptr.Deref(job.Status.Terminating, 0) > 0 || (!suspended(job) && !ended(job)) {
			p.Active = true
		}
	}
	return p
}

// noteRefusals has the progress tell why the API server refuses pods of a Job that runs and lacks some, or
// the PodGroup without which none are made. It is looked at again when that has lasted long enough to tell.
func (a *attempt) noteRefusals(p *jobs.Progress) {
	var lacking []types.UID
	var pods int32
	if a.lacksGang {
		lacking, pods = append(lacking, a.js.UID), 1
	}
	for _, job := range a.children.active {
		if lacks := podsOf(&job.Spec) - job.Status.Active - job.Status.Succeeded; lacks > 0 && !suspended(job) {
			lacking, pods = append(lacking, job.UID), pods+lacks
		}
	}
	for _, uid := range lacking {
		due := a.seen.NoteRefusals(p, uid, pods)
		if p.Refused != "" {
			return
		}
		a.plan.DueBy(due)
	}
}

// reclaimable counts, of the pods that the quota is for, those that are not needed any
// more: their Jobs have succeeded, or are smaller now. Jobs that a restart could run
// again keep theirs: quota that was given to others could not be taken back for them.
func (a *attempt) reclaimable() map[string]int32 {
	out := map[string]int32{}
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		asked := podCount(rj)
		if granted, ok := a.seen.Admission.PodSets[rj.Name]; ok {
			asked = granted.Asked
		}
		if boundsOf(a.js, rj).Elastic && a.jobsLeft(rj) > 0 {
			// It is the queue's to say how many pods there are, but for a Job that comes to its end, which does not grow: it is
			// told of no more than were not given, so that nothing is lent.
			if job := a.elasticJob(rj); job != nil {
				if n := min(job.Status.Succeeded, asked-a.seen.Admission.PodSets[rj.Name].Count); n > 0 {
					out[rj.Name] = n
				}
			}
			continue
		}
		if unneeded := asked - a.jobsLeft(rj)*a.sizeOf(rj); unneeded > 0 {
			out[rj.Name] = unneeded
		}
	}
	return out
}
