package jobset

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// missingGang says that a PodGroup is missing, without which the pods of its gang cannot be created.
	missingGang bool
	// layouts caches layoutOf by replicated job.
	layouts map[string]rankLayout
	// usages caches usageOf by replicated job, roomless withoutRoom.
	usages   map[string]*usage
	roomless map[string]map[string]bool
	// firstRoomless is the first Job that must not start for want of quota, nil if there is none. starts says that the
	// plan starts another one.
	firstRoomless *roomless
	starts        bool
}

func newPlanner(seen jobs.Seen[*jobset.JobSet]) *planner {
	js := seen.Job.DeepCopy()
	p := &planner{seen: seen, js: js, moved: map[string]bool{}, gangs: map[string]bool{}, layouts: map[string]rankLayout{},
		children: sortChildren(jobs.ChildrenOf[*batchv1.Job](seen.Children), js)}
	for _, group := range jobs.ChildrenOf[*schedulingv1beta1.PodGroup](seen.Children) {
		p.podGroups = append(p.podGroups, group)
	}
	return p
}

// plan returns what has to be done for a JobSet, given the observed state.
func plan(seen jobs.Seen[*jobset.JobSet]) jobs.Plan {
	p := newPlanner(seen)
	js := p.js
	p.countJobs()
	p.plan.Status = p.js
	switch {
	case finished(js):
		p.cleanUpFinished()
	case p.mustClearSuspend():
		p.clearSuspend()
		p.plan.Status = nil
	case len(p.children.failed) > 0:
		p.applyFailurePolicy()
	case p.succeeded():
		p.complete()
	case p.restartInPlace():
		// The restart budget is exhausted, and the JobSet has failed.
	default:
		p.converge()
	}
	p.plan.StatusCanWait = p.plan.Status != nil && (sameButCounts(&seen.Job.Status, &p.js.Status) || p.justQueued())
	p.plan.Progress = p.progress()
	return p.plan
}

// justQueued reports whether the JobSet has just been queued. Most JobSets are admitted at once, so that a status that
// says they wait would be a wasted write.
func (p *planner) justQueued() bool {
	return p.seen.Admission.Grant == jobs.Waiting && len(p.seen.Job.Status.ReplicatedJobsStatus) == 0 && len(p.seen.Children) == 0 && !finished(p.js) &&
		!meta.IsStatusConditionTrue(p.js.Status.Conditions, muster.CannotStartCondition)
}

// converge brings a JobSet that has neither failed nor succeeded closer to its spec.
func (p *planner) converge() {
	p.deleteJobs(p.children.previous)
	p.endRestart()
	p.warnOfNoSuccess()
	fit := p.canStart()
	switch {
	case p.held():
		p.suspendJobs()
		p.resetAttempts()
		p.restartWhole()
	case p.seen.Admission.MayStart() && fit:
		p.recreateExcluded()
		p.ensureGangs()
		p.resumeJobs()
		p.resizeJobs()
	}
	// A JobSet that waits in a queue gets nothing yet: what it needs is created at its admission, with what it was
	// given. A JobSet suspended by its user gets suspended Jobs.
	if p.seen.Admission.MayStart() {
		p.createServices()
		if p.createClaims() && fit {
			p.createJobs()
		}
	}
	if fit {
		p.reportRefused()
	}
}

// cleanUpFinished deletes what still runs, and finally the JobSet itself if it has a time to live. Jobs that have ended
// are kept for their logs.
func (p *planner) cleanUpFinished() {
	p.deleteJobs(p.children.previous)
	p.deleteJobs(p.children.active)
	p.removeExpired()
	p.plan.Expire(p.seen.Job, endedAt(p.js), p.js.Spec.TTLSecondsAfterFinished, p.seen.Now, metav1.DeletePropagationForeground)
}

// removeExpired deletes ended Jobs whose template has a time to live, once that has passed since the end of the JobSet.
func (p *planner) removeExpired() {
	for i := range p.js.Spec.ReplicatedJobs {
		rj := &p.js.Spec.ReplicatedJobs[i]
		for _, job := range slices.Concat(p.children.succeeded, p.children.failed) {
			if job.Labels[jobset.ReplicatedJobNameKey] == rj.Name && job.DeletionTimestamp.IsZero() {
				ttl := rj.Template.Spec.TTLSecondsAfterFinished
				p.plan.Expire(job, endedAt(p.js), ttl, p.seen.Now, metav1.DeletePropagationBackground)
			}
		}
	}
}

// deleteJobs deletes Jobs in the foreground, so that their names stay taken until their pods are gone.
func (p *planner) deleteJobs(list []*batchv1.Job) {
	for _, job := range list {
		if job.DeletionTimestamp.IsZero() {
			p.plan.Writes = append(p.plan.Writes, jobs.Delete(job, metav1.DeletePropagationForeground))
		}
	}
}

// progress returns what the queue needs to know.
func (p *planner) progress() jobs.Progress {
	ready, stage := p.readiness()
	progress := jobs.Progress{Ready: ready, Stage: stage, Reclaimable: p.reclaimable(), Pods: p.podsInUse(), Outcome: outcome(p.js)}
	if p.noteRefusals(&progress); progress.Refused == "" && progress.Outcome == nil && !slices.ContainsFunc(p.children.active, isRunning) {
		progress.Refused = p.cannotStart()
	}
	for _, job := range p.children.all() {
		progress.Active = progress.Active || !jobs.HasNoPods(job)
	}
	progress.Active = progress.Active || p.awaitsRestart()
	p.awaitRoom(&progress)
	return progress
}

// noteRefusals reports in the progress why the API server refuses pods of a running Job with missing pods, or a
// PodGroup without which no pods are created. If the refusals have not lasted long enough yet, the JobSet is planned
// again when they have.
func (p *planner) noteRefusals(progress *jobs.Progress) {
	var owners []types.UID
	var pods int32
	if p.missingGang {
		owners, pods = append(owners, p.js.UID), 1
	}
	for _, job := range p.children.active {
		if missing := jobs.PodsLeft(job) - job.Status.Active; missing > 0 && !suspended(job) {
			owners, pods = append(owners, job.UID), pods+missing
		}
	}
	for _, uid := range owners {
		due := p.seen.NoteRefusals(progress, uid, pods)
		if progress.Refused != "" {
			return
		}
		p.plan.DueBy(due)
	}
}

// reclaimable counts the pods with quota that are not needed any more and are gone, because their Jobs have succeeded or
// are smaller now. Jobs that a restart could run again keep their quota, because it could not be taken back from others.
func (p *planner) reclaimable() map[string]int32 {
	out := map[string]int32{}
	if p.held() && p.restartsWhole() {
		return out
	}
	for i := range p.js.Spec.ReplicatedJobs {
		rj := &p.js.Spec.ReplicatedJobs[i]
		asked := podCount(rj)
		if granted, ok := p.seen.Admission.PodSets[rj.Name]; ok {
			asked = granted.Asked
		}
		if boundsOf(p.js, rj).Elastic && p.jobsLeft(rj) > 0 {
			// The queue decides how many pods there are. Only of a Job that is about to end, and must not grow any
			// more, are ended pods reported, and no more than the pods that were not granted, so that no granted quota
			// is given away.
			if job := p.elasticJob(rj); job != nil {
				if n := min(job.Status.Succeeded, asked-p.seen.Admission.PodSets[rj.Name].Count); n > 0 {
					out[rj.Name] = n
				}
			}
			continue
		}
		if unneeded := asked - max(p.jobsLeft(rj)*p.sizeOf(rj), p.usageOf(rj).pods); unneeded > 0 {
			out[rj.Name] = unneeded
		}
	}
	return out
}
