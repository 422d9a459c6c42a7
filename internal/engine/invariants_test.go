package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// world is an engine under random events, and an API server that has what it was
// told.
type world struct {
	options Options
	engine  *Engine
	log     []entry
	decided []Decision
	team    CohortSet // within the cohort lab, or beside it
	queues  map[string]ClusterQueueSet
	jobs    map[string]WorkloadSet // as the API server has them
	open    []Decision             // not yet written
	clock   time.Time
	wide    *wideWorld // nil for one of cpu in one flavor
}

// entry is an event, or the time of a pass.
type entry struct {
	event     Event
	decidedAt time.Time
}

var queueNames = []string{"p", "q", "r"}

func newWorld(t *rapid.T) *world {
	options := drawOptions(t)
	w := &world{options: options, engine: New(options), queues: map[string]ClusterQueueSet{}, jobs: map[string]WorkloadSet{}, clock: epoch,
		team: CohortSet{Cohort{Name: "team"}}}
	w.apply(defaultFlavor)
	if rapid.Bool().Draw(t, "a cohort within the cohort") {
		w.team.Parent = "lab"
	}
	w.team.Weight = drawWeight(t, "team")
	w.apply(w.team)
	for _, name := range queueNames {
		w.setQueue(t, name)
		w.apply(localOf(name))
	}
	return w
}

// drawOptions has shares compared in half of the worlds.
func drawOptions(t *rapid.T) Options {
	strategies := rapid.SampledFrom([][]preempt.Strategy{nil, nil, nil,
		{preempt.LessThanOrEqualToFinalShare, preempt.LessThanInitialShare},
		{preempt.LessThanOrEqualToFinalShare}, {preempt.LessThanInitialShare},
	}).Draw(t, "strategies of fair sharing")
	var options Options
	if strategies != nil {
		options.FairSharing = &FairSharing{Strategies: strategies}
	}
	if rapid.Bool().Draw(t, "LocalQueues are compared") {
		options.AdmissionFairSharing = &AdmissionFairSharing{HalfLife: 7 * time.Second, Interval: 3 * time.Second}
	}
	return options
}

func drawWeight(t *rapid.T, of string) *quota.Weight {
	return rapid.SampledFrom([]*quota.Weight{nil, nil, weight(0), weight(quota.One / 2), weight(3 * quota.One)}).Draw(t, "weight of "+of)
}

func weight(w quota.Weight) *quota.Weight { return &w }

func (w *world) setQueue(t *rapid.T, name string) {
	cohort := rapid.SampledFrom([]string{"lab", "lab", "team"}).Draw(t, "cohort of "+name)
	q := queueOf(name, cohort, rapid.Int64Range(0, 8).Draw(t, "quota of "+name))
	q.Strategy = rapid.SampledFrom([]Strategy{BestEffort, Strict, ByResource}).Draw(t, "strategy of "+name)
	q.Preemption = preempt.Policy{
		WithinQueue: preempt.Rule(rapid.IntRange(0, 2).Draw(t, name+" within")),
		Reclaim:     rapid.SampledFrom([]preempt.Rule{preempt.Never, preempt.LowerPriority, preempt.Any}).Draw(t, name+" reclaims"),
	}
	if q.Preemption.Reclaim != preempt.Never {
		q.Preemption.WhileBorrowing = rapid.Bool().Draw(t, name+" while borrowing")
	}
	q.Weight, q.ByUsage = drawWeight(t, name), rapid.Bool().Draw(t, name+" goes by usage")
	w.queues[name] = q
	w.apply(q)
}

func (w *world) apply(ev Event) {
	w.log = append(w.log, entry{event: ev})
	w.engine.Apply(ev)
}

func (w *world) decide() []Decision {
	w.clock = w.clock.Add(time.Second)
	w.log = append(w.log, entry{decidedAt: w.clock})
	out := decideAll(w.engine, w.clock)
	w.decided = append(w.decided, out...)
	for _, d := range out {
		if d.Admit != nil || d.Evict != nil {
			w.open = append(w.open, d)
		}
	}
	return out
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.jobs)) }

// write has the API server take or lose the i-th decision that is under way.
func (w *world) write(i int, lost bool) {
	d := w.open[i]
	w.open = slices.Delete(w.open, i, i+1)
	job, there := w.jobs[d.Key.Name]
	overtaken := !there || job.UID != d.UID || d.Admit != nil && (job.Admission != nil || job.Generation != d.Generation) ||
		d.Evict != nil && job.Admission == nil
	if lost || overtaken {
		w.apply(Failed{Key: d.Key, UID: d.UID})
		return
	}
	job.Version++
	if d.Admit != nil {
		job.Admission, job.Admitted, job.ReservedAt, job.Evicted = d.Admit, true, w.clock, false
	} else {
		job.Evicted = true
	}
	w.jobs[d.Key.Name] = job
	w.apply(Written{Key: d.Key, UID: d.UID, Version: job.Version})
}

// step makes one random thing happen.
func (w *world) step(t *rapid.T) {
	if w.wide != nil && rapid.Bool().Draw(t, "wide") {
		w.wideStep(t)
		return
	}
	names := w.names()
	switch kind := rapid.IntRange(0, 19).Draw(t, "kind of event"); {
	case kind < 7 || len(names) == 0:
		name := fmt.Sprintf("j%03d", len(w.log))
		ev := job(name, rapid.SampledFrom(queueNames).Draw(t, "queue"), rapid.Int32Range(0, 4).Draw(t, "pods"),
			rapid.Int64Range(0, 4).Draw(t, "cpu"), rapid.Int32Range(-1, 1).Draw(t, "priority"), len(w.log))
		if rapid.Bool().Draw(t, "can start smaller") {
			ev.PodSets[0].MinCount = min(1, ev.PodSets[0].Count)
		}
		w.jobs[name] = ev
		w.apply(ev)
	case kind < 9:
		name := rapid.SampledFrom(names).Draw(t, "ends")
		delete(w.jobs, name)
		w.apply(gone(name))
	case kind < 13 && len(w.open) > 0:
		w.write(rapid.IntRange(0, len(w.open)-1).Draw(t, "written"), kind == 12)
	case kind < 15: // the watch brings what the API server has, or the job stopped
		name := rapid.SampledFrom(names).Draw(t, "seen")
		ev := w.jobs[name]
		if ev.Evicted {
			ev.Admission, ev.Admitted, ev.Evicted = nil, false, false
			ev.Version++
			w.jobs[name] = ev
		}
		w.apply(ev)
	case kind < 17:
		name := rapid.SampledFrom(names).Draw(t, "edited")
		ev := w.jobs[name]
		ev.Inactive = !ev.Inactive
		ev.Generation++
		ev.Version++
		w.jobs[name] = ev
		w.apply(ev)
	case kind < 18:
		w.setQueue(t, rapid.SampledFrom(queueNames).Draw(t, "reconfigured"))
	default:
		w.decide()
	}
}

// settle lets everything that is under way end: decisions are written, evicted jobs
// stop, until nothing happens any more. It fails if that never comes.
func (w *world) settle(t *rapid.T) {
	for range 200 {
		if len(w.decide()) == 0 && len(w.open) == 0 && !w.leaving() {
			return
		}
		for len(w.open) > 0 {
			w.write(0, false)
		}
		for _, name := range w.names() {
			ev := w.jobs[name]
			if ev.Evicted {
				ev.Admission, ev.Admitted, ev.Evicted = nil, false, false
				ev.Version++
				w.jobs[name] = ev
			}
			w.apply(ev)
		}
	}
	w.describe(t)
	t.Fatal("decisions never end")
}

// leaving reports whether anybody was told to go and has not gone.
func (w *world) leaving() bool {
	for _, job := range w.jobs {
		if job.Evicted {
			return true
		}
	}
	return false
}

// describe prints what led here.
func (w *world) describe(t *rapid.T) {
	for _, d := range w.decided[max(0, len(w.decided)-12):] {
		t.Logf("%s: admit %v, evict %+v, why %s %s", d.Key.Name, d.Admit, d.Evict, d.Why.Code, d.Why.Message())
	}
	for _, name := range queueNames {
		t.Logf("%s: %+v %+v", name, w.queues[name].Quotas, w.queues[name].Preemption)
	}
	for _, name := range w.names() {
		j := w.jobs[name]
		t.Logf("%s in %s priority %d inactive %v %+v queued %v holds %v", name, j.Queue, j.Priority, j.Inactive, j.PodSets, j.QueuedAt.Sub(epoch), j.Admission)
	}
}

// checkSmall has the property hold in worlds of cpu in one flavor, and check in wide
// ones too.
func checkSmall(t *testing.T, property func(t *rapid.T, w *world)) {
	rapid.Check(t, func(t *rapid.T) { property(t, newWorld(t)) })
}

func check(t *testing.T, property func(t *rapid.T, w *world)) {
	t.Run("small", func(t *testing.T) { checkSmall(t, property) })
	t.Run("wide", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { property(t, newWideWorld(t)) })
	})
}

// owes reports of what a ledger has more than there is at a queue and over it.
func (w *world) owes(l quota.Ledger, queue string) (short []quota.FlavorResource) {
	n := w.engine.queues[queue].node
	for i := range quota.Index(w.resources()) {
		if n.Available(l, i) < 0 {
			short = append(short, w.engine.tree.Name(i))
		}
	}
	return short
}

// resources is how many FlavorResources the engine has heard of.
func (w *world) resources() int {
	known := 0
	for _, q := range w.queues {
		for fr := range q.Quotas {
			known = max(known, int(w.engine.tree.Index(fr))+1)
		}
	}
	return known
}

// TestQuotaIsNeverExceededByADecision: whatever happens, a pass gives no queue what it
// may not take, nor promises it (S1). What it owes already, it may owe.
func TestQuotaIsNeverExceededByADecision(t *testing.T) {
	type debt struct {
		ledger quota.Ledger
		queue  string
		of     quota.FlavorResource
	}
	debts := func(w *world) map[debt]bool {
		out := map[debt]bool{}
		for _, l := range []quota.Ledger{quota.Held, quota.Planned} {
			for _, queue := range queueNames {
				for _, fr := range w.owes(l, queue) {
					out[debt{l, queue, fr}] = true
				}
			}
		}
		return out
	}
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			w.engine.Arrange()
			before := debts(w) // an eviction that was not written may have left some
			for _, d := range w.decide() {
				if d.Admit == nil {
					continue
				}
				for owed := range debts(w) {
					for _, ps := range d.Admit.PodSets {
						takes := owed.queue == d.Admit.ClusterQueue && ps.Flavors[owed.of.Resource] == owed.of.Flavor && ps.Usage[owed.of.Resource] > 0
						if takes && (owed.ledger == quota.Held || !before[owed]) {
							w.describe(t)
							t.Fatalf("%s was given %+v, and ledger %d owes %v", d.Key.Name, d.Admit, owed.ledger, owed.of)
						}
					}
				}
			}
		}
	})
}

// TestLedgersAreTheSumOfWhatIsHeld: the incremental sums, tallies and lists equal
// those made from scratch (E3).
func TestLedgersAreTheSumOfWhatIsHeld(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		w.decide()
		for _, name := range queueNames {
			q := w.engine.queues[name]
			var held, planned []quota.Amount
			var count [4]int
			holders := 0
			for _, job := range w.engine.workloads {
				if job.queue != q {
					continue
				}
				count[job.counts().state]++
				switch {
				case job.held != nil:
					held = append(held, w.engine.vectorOf(job.held)...)
					if !job.leaving() {
						planned = append(planned, w.engine.vectorOf(job.held)...)
					}
				case job.promise != nil:
					planned = append(planned, w.engine.vectorOf(job.promise.given)...)
				}
				if job.charged.holder != nil {
					holders++
				}
			}
			reserved := []quota.Amount{}
			for i, sum := range q.reserved {
				reserved = append(reserved, quota.Amount{Index: i, Value: sum.Value()})
			}
			got := []any{q.node.Charges(quota.Held), q.node.Charges(quota.Planned), quota.VectorOf(reserved...), q.pending, q.reserving, len(q.holders)}
			want := []any{quota.VectorOf(held...), quota.VectorOf(planned...), quota.VectorOf(held...), count[pending], count[reserving] + count[admitted], holders}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("queue %s (-from scratch +kept):\n%s", name, diff)
			}
			if !slices.IsSortedFunc(q.holders, preempt.CompareHolders) {
				t.Fatalf("holders of %s are not in order", name)
			}
		}
	})
}

// lookAt evaluates a class as a pass would.
func (e *Engine) lookAt(c *class) (found outcome) {
	e.keepAll(c.queue.family)
	defer e.letAllGo(c.queue.family)
	return e.seeingThrough(c)
}

// TestNothingThatFitsIsLeftWaiting: after a pass nobody who may go first fits, and a
// second pass says nothing (L4).
func TestNothingThatFitsIsLeftWaiting(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		w.decide()
		if again := w.decide(); len(again) != 0 {
			t.Fatalf("a second pass without news decided %+v", again)
		}
		if w.entangled() {
			return
		}
		for _, q := range w.engine.queues {
			for _, c := range q.classes {
				if q.Strategy == Strict && c != q.head || c.heldBy != nil {
					continue
				}
				if found := w.engine.lookAt(c); found.verdict != hopeless {
					t.Fatalf("%s waits in %s, and yet: %+v", c.head().Key, q.Name, found)
				}
			}
		}
	})
}

// TestEvictionsEnd: while nobody comes or goes, evictions and admissions come to an
// end: nobody is evicted in turns.
func TestEvictionsEnd(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		w.settle(t)
	})
}

// TestVictimsAreOfLowerRankAndThePreemptorThenFits (S7): each victim may be evicted by
// the policy of the preemptor's queue, and once all victims have gone there is room for
// the preemptor.
func TestVictimsAreOfLowerRankAndThePreemptorThenFits(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		preemptors := map[string]bool{}
		for _, d := range w.decide() {
			if d.Evict == nil {
				continue
			}
			victim, by := w.jobs[d.Key.Name], w.jobs[d.Evict.Preemptor.Name]
			policy := w.queues[by.Queue].Preemption
			lower := victim.Priority < by.Priority
			newer := victim.Priority == by.Priority && by.QueuedAt.Before(victim.QueuedAt)
			allowed := map[preempt.Cause]bool{
				preempt.InQueue:   victim.Queue == by.Queue && (lower || newer && policy.WithinQueue == preempt.LowerOrNewerEqualPriority),
				preempt.Reclaimed: victim.Queue != by.Queue && (lower || policy.Reclaim == preempt.Any),
				preempt.FairShare: victim.Queue != by.Queue && (lower && policy.Reclaim == preempt.LowerPriority || policy.Reclaim == preempt.Any) &&
					w.options.FairSharing != nil,
				preempt.ReclaimedWhileBorrowing: victim.Queue != by.Queue && lower && policy.WhileBorrowing,
			}
			if !allowed[d.Evict.Cause] {
				t.Fatalf("%+v was evicted for %+v because of %d under %+v", victim, by, d.Evict.Cause, policy)
			}
			preemptors[d.Evict.Preemptor.Name] = true
		}
		if len(preemptors) == 0 {
			return
		}
		for name := range preemptors {
			by := w.engine.workloads[Key{Namespace: "ns", Name: name}]
			if by.promise == nil {
				continue
			}
			for _, a := range by.promise.usage {
				if by.queue.node.Available(quota.Planned, a.Index) < 0 {
					t.Fatalf("%s had others evicted and will not fit", name)
				}
			}
		}
	})
}

// TestARestartComesToTheSameEnd: an engine that hears only what the API server has
// ends with the same workloads holding quota as one that was there all the time, but
// for who was evicted for whom: that is remembered by none but the latter (E1).
func TestARestartComesToTheSameEnd(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		if w.entangled() {
			return
		}
		w.settle(t)
		fresh := New(w.options)
		for _, name := range w.names() {
			fresh.Apply(w.jobs[name])
		}
		for _, entry := range w.log {
			switch entry.event.(type) {
			case ClusterQueueSet, LocalQueueSet, CohortSet, FlavorSet:
				fresh.Apply(entry.event)
			}
		}
		for _, d := range decideAll(fresh, w.clock) {
			if d.Evict != nil && w.engine.precedence.Over(d.Evict.Preemptor).Len() > 0 {
				return // all else may follow from that
			}
			if d.Admit != nil || d.Evict != nil {
				w.describe(t)
				t.Fatalf("a restart decided %+v", d)
			}
		}
	})
}

// TestReplayGivesTheSameDecisions: the log of events alone reproduces every
// decision of every pass (E5).
func TestReplayGivesTheSameDecisions(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		replayed := New(w.options)
		var again []Decision
		for _, entry := range w.log {
			if entry.event != nil {
				replayed.Apply(entry.event)
			} else {
				again = append(again, decideAll(replayed, entry.decidedAt)...)
			}
		}
		if diff := cmp.Diff(w.decided, again); diff != "" {
			t.Fatalf("replay differs (-live +replayed):\n%s", diff)
		}
	})
}
