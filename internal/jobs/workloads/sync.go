package workloads

import (
	"time"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// syncAction is what is done about the Workload of a job.
type syncAction string

const (
	// finishOutOfSync finishes the Workload that the job names: it asks for other pods than the job.
	finishOutOfSync syncAction = "finish out of sync"
	// giveBack deletes the Workload, once the job has no pods.
	giveBack syncAction = "give back"
	// replace deletes the Workload because the job names another one, or none any more. It is deleted rather than left
	// evicted, or it could be admitted again before the job follows the new one.
	replace syncAction = "replace"
	// leave writes nothing: the job has no Workload, and gets none.
	leave syncAction = "leave"
	// take makes the job the controller of the Workload that it names, or says what prevents that. There is nothing more
	// to do about a Workload that the job has taken before, except to report.
	take syncAction = "take"
	// report reports the job's progress on the Workload, and changes nothing that the Workload asks for.
	reportOnly syncAction = "report"
	// describe creates the Workload, or makes it ask for what the job asks for, and reports the job's progress.
	describe syncAction = "describe"
)

// syncCase is what decides about the Workload that a job follows.
type syncCase struct {
	// hasOutcome says that the job has ended, requeues that it has no pods and now asks for other ones than the Workload
	// does.
	hasOutcome, requeues bool
	// idle says that the job is paused, or asks for no pods while the Workload holds no quota. noPods says that the job
	// asks for no pods, whatever the Workload holds.
	idle, noPods bool
	// mistaken says that the job cannot be queued as it is.
	mistaken bool
	// exists says that there is a Workload, owned that the job controls it.
	exists, owned bool
	// prebuilt says that someone else made the Workload, or is to make it. named says that the job names the Workload,
	// wanted that the job would follow it also without quota. keepsQuota says that the Workload holds quota, and does not
	// give it up.
	prebuilt, named, wanted, keepsQuota bool
}

// action returns what is done: what the first case says that applies.
func (s syncCase) action() syncAction {
	switch {
	case s.requeues && s.exists && s.named:
		return finishOutOfSync
	case s.givesBack():
		return giveBack
	case !s.hasOutcome && s.exists && !s.wanted && !s.keepsQuota:
		return replace
	case !s.owned && s.mistaken:
		return leave // nor does the job adopt the Workload that it names
	case s.prebuilt && !s.hasOutcome:
		return take
	case s.prebuilt && !s.exists:
		return leave
	case s.prebuilt, s.mistaken, s.noPods:
		return reportOnly // a mistake changes nothing, and a job without pods can ask for nothing
	}
	return describe
}

// givesBack reports whether the job gives its Workload back. A Workload that holds quota is kept until the job ends or
// is evicted, even if the job asks for no pods: pods may run with it.
func (s syncCase) givesBack() bool { return s.requeues || s.idle && !s.prebuilt && !s.hasOutcome }

// State is what is known of a job when it is decided what its Workload should be.
type State struct {
	Described jobs.Description
	Facts     jobs.Facts
	// Children is how many children the job has. OwnerQueued says that the job's owner is queued for it.
	Children    int
	OwnerQueued bool
	// Followed is the Workload that the job follows, nil if there is none. Own is the same if the job controls it, else
	// nil.
	Followed, Own *kueue.Workload
}

// Sync returns the writes and events that keep the Workload of a queued job in sync with the job, be it the job's own
// or one that it names.
func (j Job) Sync(s State, queue string, progress jobs.Progress, now time.Time) ([]write.Write, []write.Event) {
	c, mistakes := j.caseOf(s, progress)
	switch c.action() {
	case finishOutOfSync:
		return outOfSync(s.Followed, now)
	case giveBack:
		return pausedWrites(s.Followed, progress), mistakes
	case replace:
		return j.GiveBack([]*kueue.Workload{s.Followed}, nil, progress), mistakes
	case leave:
		return nil, mistakes
	case take:
		if writes, events := j.takePrebuilt(s.Followed, s.Described, queue, now); len(writes)+len(events) > 0 {
			return writes, append(mistakes, events...)
		}
		return j.report(s, s.Followed, progress, now, mistakes)
	case reportOnly:
		return j.report(s, s.Followed, progress, now, mistakes)
	}
	described, deferred := j.describe(s, queue, progress)
	return j.report(s, described, progress, now, deferred)
}

// caseOf returns what decides about the job's Workload, and the events about the job's mistakes.
func (j Job) caseOf(s State, progress jobs.Progress) (syncCase, []write.Event) {
	followed, exists := s.Followed, s.Followed != nil
	c := syncCase{
		hasOutcome: progress.Outcome != nil, requeues: progress.Requeue, noPods: len(s.Described.PodSets) == 0,
		idle: s.Described.Paused || len(s.Described.PodSets) == 0 && exists && !workload.HoldsQuota(followed) &&
			!workload.IsFinished(followed),
		exists:   exists,
		owned:    exists && j.Controls(followed),
		prebuilt: j.followsPrebuilt(followed), keepsQuota: keepsQuota(followed),
		named:  exists && followed.Name == j.prebuilt(),
		wanted: exists && j.wants(followed.Name),
	}
	if c.hasOutcome {
		return c, nil
	}
	keeps := c.owned && !c.givesBack() && followed.DeletionTimestamp.IsZero()
	mistakes := mistakesOf(j.Object, s.Described, s.Facts.Priorities, keeps)
	c.mistaken = len(mistakes) > 0
	return c, mistakes
}

// describe returns the Workload that describes the job, and events about changes that take effect only when the job is
// queued again.
func (j Job) describe(s State, queue string, progress jobs.Progress) (*kueue.Workload, []write.Event) {
	asked, _ := requestOf(j.Object, s.Facts.Priorities)
	ranked := priorityOf(j.Object, s.Described, s.Facts.Priorities).keptBy(s.Followed, s.Facts.Priorities)
	described := workloadFor(j.Object, j.Kind, s.Described, queue, ranked, asked)
	if progress.Outcome != nil {
		return described, nil
	}
	if j.RequeuesChanged {
		recordNeeds(described, s.Described.PodSets)
	}
	if progress.Refused != "" {
		return described, nil
	}
	return described, deferredChanges(j.Object, queue, s.Followed, asked)
}

// report returns the writes that make the Workload that the job follows ask for what described does, which may be the
// same Workload, and report the job's progress on it. It adds to the events that the job names another Workload by now.
func (j Job) report(s State, described *kueue.Workload, progress jobs.Progress, now time.Time,
	events []write.Event) ([]write.Write, []write.Event) {
	if progress.Outcome == nil && progress.Refused == "" && s.Followed != nil && !j.wants(s.Followed.Name) {
		events = append(events, deferredWorkload(s.Followed)...)
	}
	return workloadWrites(s.Followed, described, progress, j.Backoff, now), events
}
