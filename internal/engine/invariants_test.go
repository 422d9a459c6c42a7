package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// checkSmall checks the property in worlds of cpu in one flavor; check also does so in wide, node and elastic worlds.
func checkSmall(t *testing.T, property func(t *rapid.T, w *world)) {
	rapid.Check(t, func(t *rapid.T) { property(t, newWorld(t)) })
}

func check(t *testing.T, property func(t *rapid.T, w *world)) {
	t.Run("small", func(t *testing.T) { checkSmall(t, property) })
	t.Run("wide", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { property(t, newWideWorld(t)) })
	})
	t.Run("nodes", func(t *testing.T) { checkOnNodes(t, property) })
	t.Run("elastic", func(t *testing.T) { checkElastic(t, property) })
}

// overdrawn returns the resources of which a ledger has more than the quota of a queue and the cohorts above it.
func (w *world) overdrawn(l quota.Ledger, queue string) (short []quota.FlavorResource) {
	n := w.engine.queues[queue].Node
	for i := range quota.Index(w.resources()) {
		if n.Available(l, i) < 0 {
			short = append(short, w.engine.tree.Name(i))
		}
	}
	return short
}

// resources returns the number of FlavorResources that the engine knows.
func (w *world) resources() int {
	known := 0
	for _, q := range w.queues {
		for fr := range q.Quotas {
			known = max(known, int(w.engine.tree.Index(fr))+1)
		}
	}
	return known
}

// TestQuotaIsNeverExceededByADecision: a pass never gives or nominates for a queue more than its quota (S1). An earlier
// excess may remain.
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
				for _, fr := range w.overdrawn(l, queue) {
					out[debt{l, queue, fr}] = true
				}
			}
		}
		return out
	}
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			w.engine.Arrange(w.engine.growths.Now)
			before := debts(w) // left by an eviction that was not written
			for _, d := range w.decide() {
				if d.Admit == nil {
					continue
				}
				for owed := range debts(w) {
					for _, ps := range d.Admit.PodSets {
						takes := owed.queue == d.Admit.ClusterQueue && ps.Flavors[owed.of.Resource] == owed.of.Flavor &&
							ps.Usage[owed.of.Resource] > 0
						if takes && (owed.ledger == quota.Held || !before[owed]) {
							w.describe(t)
							t.Fatalf("%s was given %+v, and ledger %d exceeds the quota of %v", d.Key.Name, d.Admit, owed.ledger, owed.of)
						}
					}
				}
			}
		}
	})
}

// TestAdmittedWorkloadHasPods: an admission gives pods to every pod set that needs any of its own, and to others as
// many as the workload needs together.
func TestAdmittedWorkloadHasPods(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			for _, d := range w.decide() {
				if d.Admit == nil {
					continue
				}
				var pods, needed, together int32
				for i, given := range d.Admit.PodSets {
					ps := w.jobs[d.Key.Name].PodSets[i]
					if given.Count == 0 && ps.Needed() > 0 && ps.Together == 0 || given.Count > ps.Needed() {
						t.Fatalf("%s was given %d pods of %s, want 1 to %d", d.Key.Name, given.Count, ps.Name, ps.Needed())
					}
					pods, needed, together = pods+given.Count+ps.Reclaimable, needed+ps.Needed()+ps.Reclaimable,
						max(together, ps.Together)
				}
				if pods < min(together, needed) {
					t.Fatalf("%s was given %d pods with those that have ended, want %d of %d together", d.Key.Name, pods,
						together, needed)
				}
			}
		}
	})
}

// TestUnreadyWorkloadBlocksOthers: no workload is admitted while the pods of another one, of the same queue or of any
// as configured, are not ready.
func TestUnreadyWorkloadBlocksOthers(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		w.options.BlockUntilReady = rapid.SampledFrom([]Block{BlockQueue, BlockAll}).Draw(t, "which workloads wait")
		w.engine.options.BlockUntilReady = w.options.BlockUntilReady
		w.engine.tallies.options.BlockUntilReady = w.options.BlockUntilReady
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			w.losePod(t)
			starting := map[Key]string{}
			for key, job := range w.engine.workloads {
				if job.Counts().Unready {
					starting[key] = job.Held.ClusterQueue
				}
			}
			for _, d := range w.decide() {
				if d.Evict != nil {
					delete(starting, d.Key)
				}
				if d.Admit == nil {
					continue
				}
				for other, queue := range starting {
					if queue == d.Admit.ClusterQueue || w.options.BlockUntilReady == BlockAll {
						w.describe(t)
						t.Fatalf("%s was admitted in %s while %s of %s is not ready", d.Key.Name, d.Admit.ClusterQueue, other.Name, queue)
					}
				}
				if len(d.Admit.Checks) == 0 {
					starting[d.Key] = d.Admit.ClusterQueue
				}
			}
		}
	})
}

// losePod makes a pod of a ready workload fail, or does nothing.
func (w *world) losePod(t *rapid.T) {
	names := w.names()
	if len(names) == 0 || !rapid.Bool().Draw(t, "a pod fails") {
		return
	}
	name := rapid.SampledFrom(names).Draw(t, "workload of the failed pod")
	if ev := w.jobs[name]; ev.Ready {
		ev.Ready = false
		ev.Version++
		w.jobs[name] = ev
		w.apply(ev)
	}
}

// TestLedgersAreTheSumOfWhatIsHeld: the incremental sums, tallies and lists equal those computed from scratch (E3).
func TestLedgersAreTheSumOfWhatIsHeld(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		w.decide()
		for _, name := range queueNames {
			q := w.engine.queues[name]
			var held, unheld, planned []quota.Amount
			var count [4]int
			holders := 0
			for _, job := range w.engine.workloads {
				if job.ClusterQueue != q {
					continue
				}
				count[job.Counts().Phase]++
				switch {
				case job.Held != nil:
					held = append(held, w.engine.ledgers.VectorOf(job.Held)...)
					if !job.Leaving() || job.LostItsNodes() {
						planned = append(planned, w.engine.ledgers.PlannedOf(job)...)
					}
				case job.Nomination != nil:
					planned = append(planned, w.engine.ledgers.VectorOf(job.Nomination.Given)...)
				case job.Unheld: // its pods count although it holds nothing
					unheld = append(unheld, w.engine.evaluator.FirstFlavors(job)...)
				}
				if job.Charged.Holder != nil {
					holders++
				}
			}
			reserved := []quota.Amount{}
			for i, sum := range q.Reserved {
				reserved = append(reserved, quota.Amount{Index: i, Value: sum.Value()})
			}
			got := []any{q.Node.Charges(quota.Held), q.Node.Charges(quota.Planned), quota.VectorOf(reserved...), q.Pending,
				q.Reserving, len(q.Holders)}
			want := []any{quota.VectorOf(slices.Concat(held, unheld)...), quota.VectorOf(slices.Concat(planned, unheld)...),
				quota.VectorOf(held...), count[state.Pending], count[state.Reserving] + count[state.Admitted], holders}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("sums of queue %s (-from scratch +incremental):\n%s", name, diff)
			}
			if !slices.IsSortedFunc(q.Holders, preempt.CompareHolders) {
				t.Fatalf("holders of %s are not sorted", name)
			}
		}
	})
}

// TestNothingThatFitsIsLeftWaiting: after a pass, no workload that may be admitted next fits, and a second pass decides
// nothing (L4).
func TestNothingThatFitsIsLeftWaiting(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		w.decide()
		if again := w.decideNow(); len(again) != 0 {
			w.describe(t)
			t.Fatalf("a second pass without events: got decisions %+v, want none", again)
		}
		for _, q := range w.engine.queues {
			for _, c := range q.Classes {
				if !w.engine.mayBeNext(&c.Class) {
					continue
				}
				found := w.engine.reevaluate(c)
				if found.Verdict != state.Hopeless {
					t.Fatalf("%s waits in %s, but could be admitted: %+v", c.Head().Key, q.Name, found)
				}
			}
		}
	})
}

// TestEvictionsEnd: without new or finished workloads, evictions and admissions come to an end.
func TestEvictionsEnd(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		w.settle(t)
	})
}

// TestVictimsAreOfLowerRankAndThePreemptorThenFits (S7): each victim may be evicted by the policy of the preemptor's
// queue, and the preemptor fits once all victims are gone.
func TestVictimsAreOfLowerRankAndThePreemptorThenFits(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		preemptors := map[string]bool{}
		for _, d := range w.decide() {
			if d.Evict == nil || d.Evict.Cause == preempt.NodeFailures {
				continue
			}
			victim, by := w.jobs[d.Key.Name], w.jobs[d.Evict.Preemptor.Name]
			policy := w.queueOf(by.Key).Preemption
			of := w.queueOf(victim.Key).Preemption.Standing
			same := w.queueOf(victim.Key).Name == w.queueOf(by.Key).Name
			lower := victim.Priority < by.Priority
			newer := victim.Priority == by.Priority && by.QueuedAt.Before(victim.QueuedAt)
			allowed := map[preempt.Cause]bool{
				preempt.InQueue: same && (lower && (policy.WithinQueue != preempt.Never || w.elastic) ||
					newer && policy.WithinQueue == preempt.LowerOrNewerEqualPriority),
				preempt.Reclaimed: !same && (lower && policy.Reclaim == preempt.LowerPriority || policy.Reclaim == preempt.Any),
				preempt.FairShare: !same && (lower && policy.Reclaim == preempt.LowerPriority || policy.Reclaim == preempt.Any) &&
					w.options.FairSharing != nil,
				preempt.ReclaimedWhileBorrowing: !same &&
					(of.Rank < policy.Rank || of.Rank == policy.Rank && lower && policy.WhileBorrowing),
			}
			if of.Protected && !same {
				t.Fatalf("%+v was evicted for %+v, but its queue is protected", victim, by)
			}
			if !allowed[d.Evict.Cause] {
				t.Fatalf("%+v was evicted for %+v with cause %d, which policy %+v does not allow", victim, by,
					d.Evict.Cause, policy)
			}
			preemptors[d.Evict.Preemptor.Name] = true
		}
		if len(preemptors) == 0 {
			return
		}
		for name := range preemptors {
			by := w.engine.workloads[w.jobs[name].Key]
			if by.Nomination == nil {
				continue
			}
			for _, a := range by.Nomination.Usage {
				if by.ClusterQueue.Node.Available(quota.Planned, a.Index) < 0 {
					t.Fatalf("others were evicted for %s, but it will not fit", name)
				}
			}
		}
	})
}

// TestRestartComesToTheSameEnd: an engine that starts from the state of the API server ends with the same workloads
// holding quota as one that ran all the time. Excepted are the effects of earlier evictions, which only the latter
// knows (E1).
func TestRestartComesToTheSameEnd(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		w.settle(t)
		fresh := w.newEngine()
		for _, name := range w.names() {
			fresh.Apply(w.jobs[name])
		}
		for _, entry := range w.log {
			switch entry.event.(type) {
			case ClusterQueueSet, LocalQueueSet, LocalQueueDeleted, NamespaceSet, CohortSet, FlavorSet, TopologySet, NodeSet,
				NodeDeleted, PodBound, PodGone:
				fresh.Apply(entry.event)
			}
		}
		w.wantNoDecisions(t, fresh)
	})
}

// wantNoDecisions fails if an engine that starts from the state of the world's decides anything, except for what
// follows from what it does not know.
func (w *world) wantNoDecisions(t *rapid.T, fresh *Engine) {
	byUsage := slices.ContainsFunc(queueNames, func(name string) bool {
		q := w.engine.queues[name]
		return q != nil && q.RanksByUsage
	})
	for _, d := range decideAll(fresh, w.clock) {
		switch {
		case d.Evict != nil && (w.entangled() || w.engine.evictions.precedence.Over(d.Evict.Preemptor).Len() > 0 ||
			len(w.jobs[d.Evict.Preemptor.Name].PodSets) > 1):
			// The rest may follow from that. With several pod sets, the victims depend on the flavors of those that are
			// not short, and so on the time of evaluation.
			return
		case byUsage:
			return // it does not know the usage of LocalQueues since the last sample
		case w.elastic && (d.Evict != nil || d.Resize != nil && d.Resize.For != (Key{})):
			return // it does not know which growths failed after others had shrunk
		case d.Admit != nil && len(w.engine.workloads[d.Key].Avoid.Nodes) > 0:
			return // it does not know which nodes kube-scheduler has refused
		case d.Admit != nil && w.isBehind(d.Key), d.Evict != nil && w.isBehind(d.Evict.Preemptor), !w.plansLike(fresh):
			// It plans starts anew, as if none had been promised. Trees that share nodes take turns: the start of another
			// tree's workload may not be planned yet when this one is evaluated, or with other nodes.
			return
		case d.Admit != nil || d.Evict != nil || d.Resize != nil:
			w.describe(t)
			t.Fatalf("after a restart: got decision %+v, want none", d)
		}
	}
}

// isBehind reports whether the workload waits behind the planned start of another one.
func (w *world) isBehind(key Key) bool {
	waits := w.engine.workloads[key]
	return waits != nil && waits.Why.Code == reason.BehindReservation
}

// plansLike reports whether both engines plan the same starts.
func (w *world) plansLike(fresh *Engine) bool {
	for name, f := range w.engine.families {
		var planned []*state.Reservation
		if other := fresh.families[name]; other != nil {
			planned = other.Reserved
		}
		if !slices.EqualFunc(f.Reserved, planned, (*state.Reservation).Same) {
			return false
		}
	}
	return true
}

// TestReplayGivesTheSameDecisions: replaying the log of events reproduces every decision of every pass (E5).
func TestReplayGivesTheSameDecisions(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		w.checkReplay(t)
	})
}
