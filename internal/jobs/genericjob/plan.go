package genericjob

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// look is one look at a GenericJob: what was seen, and what is planned so far.
type look struct {
	seen jobs.Seen[*tensorstack.GenericJob]
	// job is what was seen, but for its status, parts of which are replaced by what they
	// should be. Nothing below these is its own: a deep copy of thousands of replicas is most
	// of what a look costs.
	job   *tensorstack.GenericJob
	specs map[string]*tensorstack.ReplicaSpec
	// sizes is how many replicas there are of each type.
	sizes  map[string]int32
	roster *replicas.Roster
	// lost are failed pods that do not count, for their nodes or their places were taken
	// from them.
	lost []*corev1.Pod
	// failed is a replica that has failed in this look, nil if none has.
	failed *replicas.Replica
	plan   jobs.Plan
}

// Reasons of events, beside those of conditions.
const (
	restartingReason = "Restarting"
	replacingReason  = "ReplacingLostPods"
	pausedMessage    = "The job is paused: its pods are deleted until it is resumed"
	resumedMessage   = "The job is resumed"
)

// plan says what follows from what was seen of a GenericJob.
func plan(seen jobs.Seen[*tensorstack.GenericJob]) jobs.Plan {
	l := newLook(seen)
	over := outcome(l.job)
	if over == nil && l.overtime() {
		l.plan.Progress = l.progress(nil)
		l.plan.Progress.Reclaimable = nil // no status is written that would remember who has ended
		return l.plan
	}
	if over == nil {
		if over = judge(l.job, l.roster); over != nil {
			l.end(over)
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

func newLook(seen jobs.Seen[*tensorstack.GenericJob]) *look {
	job := new(tensorstack.GenericJob)
	*job = *seen.Job
	l := &look{seen: seen, job: job, specs: make(map[string]*tensorstack.ReplicaSpec, len(job.Spec.ReplicaSpecs))}
	for i := range job.Spec.ReplicaSpecs {
		l.specs[job.Spec.ReplicaSpecs[i].Type] = &job.Spec.ReplicaSpecs[i]
	}
	pods := jobs.ChildrenOf[*corev1.Pod](seen.Children)
	l.sizes = sizesOf(job, seen.Admission, pods)
	l.roster = replicas.Observe(job.Name, groups(job, l.sizes), memoryOf(&job.Status), pods)
	if outcome(job) == nil {
		l.lost = l.roster.RestartDisrupted()
	}
	if r := firstOf(l.roster, func(r *replicas.Replica) bool { return r.Phase == replicas.Failed }); r != nil {
		before := *r // as it is now: a restart changes it
		l.failed = &before
	}
	return l
}

// run brings a job that may have pods closer to its spec.
func (l *look) run() {
	l.resume()
	l.restart()
	l.plan.DeletePods(l.roster.Outdated())
	l.replace(l.lost)
	if l.seen.Admission.MayStart() {
		l.createPodGroup()
		l.createServices()
		l.createPods()
		jobs.JoinGangs(l.seen, kind, l.least(), &l.plan)
	}
}

// restart starts replicas anew that have ended and are to be. That is written first:
// it is what makes their pods pods of the past, so that nothing is lost if they are
// not deleted now, and nothing is counted twice.
func (l *look) restart() {
	again := l.roster.Restart()
	if len(again) == 0 {
		return
	}
	l.plan.StatusFirst = true
	first := &again[0]
	what := first.Name + " has succeeded and is to run again"
	if first.Phase == replicas.Failed {
		what = failureOf(first)
	}
	if n := len(again) - 1; n > 0 {
		what = fmt.Sprintf("%s, and %d more", what, n)
	}
	l.plan.Events = append(l.plan.Events, jobs.Warning(restartingReason, fmt.Sprintf("Restarting %d of %d replicas: %s", len(again), len(l.roster.Replicas), what)))
}

// replace deletes pods that were lost to what befell their nodes, or to somebody who
// needed their places: others are made once they are gone, and no restart is counted.
func (l *look) replace(lost []*corev1.Pod) {
	lost = slices.DeleteFunc(slices.Clone(lost), replicas.IsTerminating)
	if len(lost) == 0 {
		return
	}
	l.plan.DeletePods(lost)
	l.plan.Events = append(l.plan.Events, jobs.Warning(replacingReason, fmt.Sprintf(
		"Replacing %d of %d pods that were lost to a disruption, such as of their node; no restart is counted: %s first", len(lost), len(l.roster.Replicas), lost[0].Name)))
}

// hold ends the pods of a job that a queue holds. Pods that have ended stay: they hold
// nothing, and their replicas are not run again.
func (l *look) hold() {
	l.resume()
	l.plan.DeletePods(l.roster.Pods(true))
}

// progress is what the queue needs to know.
func (l *look) progress(over *jobs.Outcome) jobs.Progress {
	p := jobs.Progress{
		Active:      l.roster.Active(),
		Ready:       over != nil || l.ready(), // what runs on after the end is not waited for
		Reclaimable: l.roster.FinalCounts(),
		Outcome:     over,
	}
	l.elasticProgress(&p)
	if over != nil && p.Active && l.seen.Admission.HoldsQuota() {
		p.Outcome = nil // its pods run on, and what they use stays theirs until they end
	}
	if lacking := len(l.roster.Missing()); over == nil && lacking > 0 {
		l.plan.DueBy(l.seen.NoteRefusals(&p, l.job.UID, int32(lacking)))
	}
	return p
}
