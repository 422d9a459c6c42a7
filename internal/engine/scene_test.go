package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/engine/preempt"
)

// scene is an engine whose decisions are written at once.
type scene struct {
	*testing.T
	engine *Engine
	jobs   map[string]WorkloadSet // as the API server has them
	now    time.Time
	refuse map[string]string // jobs whose admission the API server refuses, with what it says
}

// newScene returns a scene in which the given events have been decided on.
func newScene(t *testing.T, options Options, given ...Event) *scene {
	s := &scene{T: t, engine: New(options), jobs: map[string]WorkloadSet{}, now: epoch, refuse: map[string]string{}}
	s.happens(append([]Event{defaultFlavor}, given...)...)
	return s
}

// happens applies the events, decides until the engine is idle, and returns the decisions, one line each.
func (s *scene) happens(events ...Event) []string {
	for _, ev := range events {
		switch ev := ev.(type) {
		case WorkloadSet:
			ev.Version = s.jobs[ev.Key.Name].Version + 1
			s.jobs[ev.Key.Name] = ev
			s.engine.Apply(ev)
			continue
		case WorkloadGone:
			delete(s.jobs, ev.Key.Name)
		}
		s.engine.Apply(ev)
	}
	var lines []string
	for {
		decisions := decideAll(s.engine, s.now)
		if len(decisions) == 0 {
			if missed := missedWaiting(s.engine); len(missed) > 0 {
				s.Fatalf("%v wait although they could be admitted: nothing made them ready", missed)
			}
			return lines
		}
		for _, d := range decisions {
			lines = append(lines, s.format(d))
			s.write(d)
		}
	}
}

// format formats a decision in one line.
func (s *scene) format(d Decision) string {
	switch {
	case d.Admit != nil:
		out := fmt.Sprintf("admit %s in %s", d.Key.Name, d.Admit.ClusterQueue)
		for i, ps := range s.jobs[d.Key.Name].PodSets {
			if given := d.Admit.PodSets[i].Count; given != ps.Count {
				out += fmt.Sprintf(", %d of %d %s", given, ps.Count, ps.Name)
			}
		}
		return out
	case d.Replace != nil:
		return "replace " + d.Key.Name
	case d.Resize != nil:
		out := fmt.Sprintf("resize %s from %d to %d", d.Key.Name, d.Resize.From, d.Resize.To)
		if d.Resize.For != (Key{}) {
			out += " for " + d.Resize.For.Name
		}
		if d.Resize.Detail != "" {
			out += ": " + d.Resize.Detail
		}
		return out
	case d.Evict != nil && d.Evict.Cause == preempt.NodeFailures:
		return fmt.Sprintf("evict %s: NodeFailures", d.Key.Name)
	case d.Evict != nil:
		cause := map[preempt.Cause]string{preempt.InQueue: "in queue", preempt.Reclaimed: "reclaimed",
			preempt.ReclaimedWhileBorrowing: "while borrowing", preempt.FairShare: "fair share"}[d.Evict.Cause]
		return fmt.Sprintf("evict %s for %s: %s", d.Key.Name, d.Evict.Preemptor.Name, cause)
	case d.Withdraw:
		return "withdraw " + d.Key.Name
	case d.Try != nil:
		return "try " + d.Key.Name
	default:
		return fmt.Sprintf("%s waits: %s", d.Key.Name, d.Why.Code)
	}
}

// write stores the decision in the API server.
func (s *scene) write(d Decision) {
	if d.Withdraw {
		return // its write is in progress: only the result of the admission is reported
	}
	if word, no := s.refuse[d.Key.Name]; no && (d.Admit != nil || d.Try != nil) {
		s.engine.Apply(Refused{Key: d.Key, UID: d.UID, Serial: d.Serial, Generation: d.Generation, Message: word, At: s.now})
		return
	}
	if d.Try != nil {
		s.engine.Apply(Tried{Key: d.Key, UID: d.UID, Serial: d.Serial})
		return
	}
	job := s.jobs[d.Key.Name]
	job.Version++
	switch {
	case d.Admit != nil:
		job.Admission, job.Admitted, job.ReservedAt, job.Evicted, job.ReportedCode = d.Admit,
			len(d.Admit.Checks) == 0, s.now, false, ""
	case d.Replace != nil:
		job.Admission = d.Replace
	case d.Resize != nil:
		job.Admission, job.ResizedAt = d.Resize.Admission, s.now
	case d.Evict != nil:
		job.Evicted = true
	default:
		job.ReportedCode = d.Why.Code
		if d.Why.Code.Actionable() {
			job.ReportedMessage = d.Why.Message()
		}
	}
	s.jobs[d.Key.Name] = job
	if d.Why.Code == "" {
		s.engine.Apply(Written{Key: d.Key, UID: d.UID, Serial: d.Serial, Version: job.Version})
	}
}

// changed returns the present state of the job after the change.
func (s *scene) changed(name string, change func(*Workload)) WorkloadSet {
	job := s.jobs[name]
	job.PodSets = slices.Clone(job.PodSets)
	change(&job.Workload)
	return job
}

// stopped returns the evicted job after its pods are gone.
func (s *scene) stopped(name string) WorkloadSet {
	return s.changed(name, func(w *Workload) { w.Admission, w.Admitted, w.Evicted = nil, false, false })
}

// want compares the decisions; when says what happened before them.
func (s *scene) want(when string, got []string, want ...string) {
	s.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("decisions after \"%s\" (-want +got):\n%s", when, diff)
	}
}

// evicting sets the preemption policy of the queue.
func evicting(q ClusterQueueSet, p preempt.Policy) ClusterQueueSet { q.Preemption = p; return q }

// smaller returns the job with this number of pods as its minimum.
func smaller(w WorkloadSet, fewest int32) WorkloadSet {
	w.PodSets = slices.Clone(w.PodSets)
	w.PodSets[0].MinCount = fewest
	return w
}

var lower = preempt.Policy{WithinQueue: preempt.LowerPriority}
