package genericjob

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// planner plans one reconcile of a GenericJob: it holds what was observed, and the plan so far.
type planner struct {
	seen jobs.Seen[*tensorstack.GenericJob]
	// job is the observed job with a status of its own, parts of which are replaced. Everything below
	// them is shared with the observed job and must not be changed: a deep copy of thousands of
	// replicas would be most of the cost of a reconcile.
	job   *tensorstack.GenericJob
	specs map[string]*tensorstack.ReplicaSpec
	// sizes is the number of replicas of each type.
	sizes  map[string]int32
	roster *replicas.Roster
	// lost are failed pods that do not count, as they failed through a disruption.
	lost []*corev1.Pod
	// failed is the first replica that has failed, as observed; nil if none has.
	failed *replicas.Replica
	plan   jobs.Plan
}

// Reasons of events, in addition to those of conditions, and their messages.
const (
	restartingReason = "Restarting"
	replacingReason  = "ReplacingLostPods"
	pausedMessage    = "The job is paused: its pods are deleted until it is resumed"
	resumedMessage   = "The job is resumed"
)

// plan returns what to do about a GenericJob.
func plan(seen jobs.Seen[*tensorstack.GenericJob]) jobs.Plan {
	l := newPlanner(seen)
	over := outcome(l.job)
	if over == nil && l.pauseAtTimeLimit() {
		l.plan.Progress = l.progress(nil)
		l.plan.Progress.Reclaimable = nil // no status is written that would record finished replicas
		return l.plan
	}
	if over == nil {
		if over = judge(l.job, l.roster); over != nil {
			l.plan.EndEvent(over, tensorstack.SucceededReason, tensorstack.FailedReason)
		}
	}
	switch {
	case over != nil:
		l.cleanUp()
	case paused(l.job):
		l.pause()
	case !seen.Admission.MayRun():
		l.hold()
	default:
		l.run()
	}
	l.report(over)
	l.plan.Progress = l.progress(over)
	return l.plan
}

func newPlanner(seen jobs.Seen[*tensorstack.GenericJob]) *planner {
	job := new(tensorstack.GenericJob)
	*job = *seen.Job
	l := &planner{seen: seen, job: job, specs: make(map[string]*tensorstack.ReplicaSpec, len(job.Spec.ReplicaSpecs))}
	for i := range job.Spec.ReplicaSpecs {
		l.specs[job.Spec.ReplicaSpecs[i].Type] = &job.Spec.ReplicaSpecs[i]
	}
	pods := jobs.ChildrenOf[*corev1.Pod](seen.Children)
	l.sizes = sizesOf(job, seen.Admission, pods)
	l.roster = replicas.Observe(job.Name, groups(job, l.sizes), recordsOf(&job.Status), pods)
	if outcome(job) == nil {
		lost, next := l.roster.RestartDisrupted(seen.Now)
		l.lost = lost
		l.plan.DueBy(next)
	}
	if r := l.roster.First(func(r *replicas.Replica) bool { return r.Phase == replicas.Failed }); r != nil {
		before := *r // a copy, as a restart changes the replica
		l.failed = &before
	}
	return l
}

// run advances a job that may have pods towards its spec.
func (pl *planner) run() {
	pl.resume()
	pl.restart()
	pl.plan.DeletePods(pl.roster.Outdated())
	pl.replace(pl.lost)
	if pl.seen.Admission.MayStart() {
		pl.createPodGroup()
		if hasServices(pl.job) {
			pl.plan.CreateServices(pl.roster, pl.seen.Children, pl.newService)
		}
		pl.plan.CreateReplicas(pl.roster, pl.seen.Admission, pl.newPod)
		jobs.JoinGangs(pl.seen, kind, pl.least(), &pl.plan)
	}
}

// restart restarts finished replicas that need it, once that is due. The status is written first: it makes their pods
// outdated, so nothing is lost if they are not deleted now, and nothing is counted twice.
func (pl *planner) restart() {
	restarted, next := pl.roster.Restart(pl.seen.Now)
	pl.plan.DueBy(next)
	if len(restarted) == 0 {
		return
	}
	pl.plan.StatusFirst = true
	first := &restarted[0]
	what := first.Name + " has succeeded and will run again"
	if first.Phase == replicas.Failed {
		what = failures.Of(first)
	}
	if n := len(restarted) - 1; n > 0 {
		what = fmt.Sprintf("%s, and %d more", what, n)
	}
	pl.plan.Events = append(pl.plan.Events, jobs.Warning(restartingReason, fmt.Sprintf("Restarting %d of %d replicas: %s", len(restarted), len(pl.roster.Replicas), what)))
}

// replace deletes pods that were lost to a disruption. New ones are created once they are gone, and no
// restart is counted.
func (pl *planner) replace(lost []*corev1.Pod) {
	lost = slices.DeleteFunc(slices.Clone(lost), replicas.IsTerminating)
	if len(lost) == 0 {
		return
	}
	pl.plan.DeletePods(lost)
	pl.plan.Events = append(pl.plan.Events, jobs.Warning(replacingReason, fmt.Sprintf(
		"Replacing %d of %d pods that were lost to a disruption, such as of their node; no restart is counted: %s first", len(lost), len(pl.roster.Replicas), lost[0].Name)))
}

// hold deletes the unfinished pods of a job that may not run. Finished pods stay: they hold no
// resources, and their replicas do not run again.
func (pl *planner) hold() {
	pl.resume()
	pl.plan.DeletePods(pl.roster.Pods(true))
}

// progress returns what the queue needs to know.
func (pl *planner) progress(over *jobs.Outcome) jobs.Progress {
	p := jobs.Progress{
		Active:      pl.roster.Active(),
		Ready:       over != nil || pl.ready(), // pods that run on after the end are not waited for
		Reclaimable: pl.roster.FinalCounts(),
	}
	pl.elasticProgress(&p, over)
	if over != nil && p.End(over, pl.seen.Admission) {
		p.RunOn = pl.runOn(p.Pods)
	}
	if missing := len(pl.roster.Missing()); over == nil && missing > 0 {
		pl.plan.DueBy(pl.seen.NoteRefusals(&p, pl.job.UID, int32(missing)))
	}
	return p
}
