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

// planner makes one plan for a JobSet: it holds the observed state and what is planned so far.
type planner struct {
	seen jobs.Seen[*jobset.JobSet]
	// js is a copy of the JobSet whose status is brought up to date.
	js       *jobset.JobSet
	children children
	// podGroups are the PodGroups among the observed children, so that looking for one need not scan all Jobs.
	podGroups []client.Object
	plan      jobs.Plan
	// moved holds the names of Jobs that the plan stops because they were given other nodes.
	moved map[string]bool
	// gangs caches joinsGang by replicated job.
	gangs map[string]bool
	// lacksGang says that a PodGroup is missing, without which the pods of its gang cannot be created.
	lacksGang bool
	// layouts caches layoutOf by replicated job.
	layouts map[string]rankLayout
}

func newPlanner(seen jobs.Seen[*jobset.JobSet]) *planner {
	js := seen.Job.DeepCopy()
	a := &planner{seen: seen, js: js, moved: map[string]bool{}, gangs: map[string]bool{}, layouts: map[string]rankLayout{},
		children: sortChildren(jobs.ChildrenOf[*batchv1.Job](seen.Children), js)}
	for _, group := range jobs.ChildrenOf[*schedulingv1beta1.PodGroup](seen.Children) {
		a.podGroups = append(a.podGroups, group)
	}
	return a
}

// plan returns what has to be done for a JobSet, given the observed state.
func plan(seen jobs.Seen[*jobset.JobSet]) jobs.Plan {
	a := newPlanner(seen)
	js := a.js
	a.countJobs()
	a.plan.Status = a.js
	switch {
	case finished(js):
		a.cleanUpFinished()
	case a.mustClearSuspend():
		a.clearSuspend()
		a.plan.Status = nil
	case len(a.children.failed) > 0:
		a.applyFailurePolicy()
	case a.succeeded():
		a.complete()
	case a.restartInPlace():
		// The restart budget is exhausted, and the JobSet has failed.
	default:
		a.converge()
	}
	a.plan.StatusCanWait = a.plan.Status != nil && (sameButCounts(&seen.Job.Status, &a.js.Status) || a.justQueued())
	a.plan.Progress = a.progress()
	return a.plan
}

// justQueued reports whether the JobSet has just been queued. Most JobSets are admitted at once, so that a status that
// says they wait would be a wasted write.
func (a *planner) justQueued() bool {
	return a.seen.Admission.Grant == jobs.Waiting && len(a.seen.Job.Status.ReplicatedJobsStatus) == 0 && len(a.seen.Children) == 0 && !finished(a.js) &&
		!meta.IsStatusConditionTrue(a.js.Status.Conditions, muster.CannotStartCondition)
}

// converge brings a JobSet that has neither failed nor succeeded closer to its spec.
func (a *planner) converge() {
	a.deleteJobs(a.children.previous)
	a.endRestart()
	a.warnOfNoSuccess()
	fit := a.agentsFit()
	switch {
	case a.held():
		a.suspendJobs()
		a.resetAttempts()
	case a.seen.Admission.MayStart() && fit:
		a.recreateExcluded()
		a.ensureGangs()
		a.resumeJobs()
		a.resizeJobs()
	}
	// A JobSet that waits in a queue gets nothing yet: what it needs is created at its admission, with what it was
	// given. A JobSet suspended by its user gets suspended Jobs.
	if a.seen.Admission.MayStart() {
		a.createServices()
		if a.createClaims() && fit {
			a.createJobs()
		}
	}
}

// cleanUpFinished deletes what still runs, and finally the JobSet itself if it has a time to live. Jobs that have ended
// are kept for their logs.
func (a *planner) cleanUpFinished() {
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

// removeExpired deletes ended Jobs whose template has a time to live, once that has passed since the end of the JobSet.
func (a *planner) removeExpired() {
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

// deleteJobs deletes Jobs in the foreground, so that their names stay taken until their pods are gone.
func (a *planner) deleteJobs(list []*batchv1.Job) {
	for _, job := range list {
		if job.DeletionTimestamp.IsZero() {
			a.plan.Writes = append(a.plan.Writes, jobs.Delete(job, metav1.DeletePropagationForeground))
		}
	}
}

// progress returns what the queue needs to know.
func (a *planner) progress() jobs.Progress {
	p := jobs.Progress{Ready: a.enoughReady(), Reclaimable: a.reclaimable(), Pods: a.podsInUse(), Outcome: outcome(a.js)}
	if a.noteRefusals(&p); p.Refused == "" && p.Outcome == nil && !slices.ContainsFunc(a.children.active, isRunning) {
		p.Refused = a.cannotStart()
	}
	for _, job := range a.children.all() {
		if job.Status.Active > 0 || ptr.Deref(job.Status.Terminating, 0) > 0 || (!suspended(job) && !ended(job)) {
			p.Active = true
		}
	}
	return p
}

// noteRefusals reports in the progress why the API server refuses pods of a running Job with missing pods, or a
// PodGroup without which no pods are created. If the refusals have not lasted long enough yet, the JobSet is planned
// again when they have.
func (a *planner) noteRefusals(p *jobs.Progress) {
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

// reclaimable counts the pods with quota that are not needed any more, because their Jobs have succeeded or are smaller
// now. Jobs that a restart could run again keep their quota, because it could not be taken back from others.
func (a *planner) reclaimable() map[string]int32 {
	out := map[string]int32{}
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		asked := podCount(rj)
		if granted, ok := a.seen.Admission.PodSets[rj.Name]; ok {
			asked = granted.Asked
		}
		if boundsOf(a.js, rj).Elastic && a.jobsLeft(rj) > 0 {
			// The queue decides how many pods there are. Only of a Job that is about to end, and must not grow any
			// more, are ended pods reported, and no more than the pods that were not granted, so that no granted quota
			// is given away.
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
