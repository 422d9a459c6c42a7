package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/growth"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// checkElastic checks the property in worlds with elastic jobs, by quota alone and on nodes, and in those where most
// jobs are elastic and grow beside those of other queues.
func checkElastic(t *testing.T, property func(t *rapid.T, w *world)) {
	t.Run("any", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			var w *world
			if rapid.Bool().Draw(t, "on nodes") {
				w = newNodeWorld(t)
			} else {
				w = newWorld(t)
			}
			w.resizes(t, 5, 3)
			property(t, w)
		})
	})
	t.Run("growing", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			w := newGrowthWorld(t)
			w.resizes(t, 30, 60)
			property(t, w)
		})
	})
}

// resizes makes jobs elastic, which rest and lose time up to these numbers of seconds.
func (w *world) resizes(t *rapid.T, longest, dearest int) {
	w.elastic = true
	w.options.Elastic = elastic.Policy{
		GrowAfter:  time.Duration(rapid.IntRange(0, longest).Draw(t, "growth rests")) * time.Second,
		ResizeCost: time.Duration(rapid.IntRange(0, dearest).Draw(t, "a resize costs")) * time.Second,
	}
	w.engine.growths.Policy = w.options.Elastic
}

// TestSizesStayWithinBoundsAndQuota: a running job always has a size from its minimum to its maximum, no job is
// resized while a decision about it is open or it is being evicted, growth takes only what is free, and only an equal
// or higher priority makes a job shrink.
func TestSizesStayWithinBoundsAndQuota(t *testing.T) {
	checkElastic(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			w.engine.Arrange(w.engine.growths.Now)
			owed := map[string][]quota.FlavorResource{}
			for _, name := range queueNames {
				owed[name] = w.overdrawn(quota.Held, name)
			}
			for _, d := range w.decide() {
				r := d.Resize
				if r == nil {
					continue
				}
				job := w.jobs[d.Key.Name]
				ps, given := job.PodSets[0], r.Admission.PodSets[0]
				switch {
				case ps.Elastic == 0, given.Count != r.To, r.To == r.From, r.To < ps.Least(), r.To > ps.Count,
					r.To > r.From && r.To > ps.Most(), r.Unwanted && r.To != ps.Most():
					w.describe(t)
					t.Fatalf("%s with pod set %+v was resized to %+v, want a size within its bounds", d.Key, ps, r)
				case given.Usage["cpu"] != int64(r.To)*ps.PerPod["cpu"]:
					t.Fatalf("%s was given usage %v, want that of its new size", d.Key, given.Usage)
				case r.To < r.From && !w.mayShrink(d.Key.Name, r):
					w.describe(t)
					t.Fatalf("%s shrank for %s, which may not take its quota", d.Key, r.For)
				case r.To > r.From && ps.PerPod["cpu"] > 0 &&
					!slices.Equal(w.overdrawn(quota.Held, r.Admission.ClusterQueue), owed[r.Admission.ClusterQueue]):
					w.describe(t)
					t.Fatalf("%s grew, and quota is exceeded", d.Key)
				}
				sum := int32(0)
				for _, p := range given.Places {
					sum += p.Count
				}
				if len(given.Places) > 0 && sum != r.To {
					t.Fatalf("%s has %d pods and places %v, want one place for each pod", d.Key, r.To, given.Places)
				}
			}
		}
	})
}

// mayShrink reports whether the job may have to shrink: for a workload of its queue that is not of lower priority,
// for one of another queue that may evict it, because nodes are lost, or because it wants fewer pods.
func (w *world) mayShrink(name string, r *Resize) bool {
	if r.For == (Key{}) {
		if r.Unwanted {
			return w.jobs[name].PodSets[0].Wanted > 0
		}
		return r.Detail != "" && w.nodes != nil
	}
	job, by := w.jobs[name], w.jobs[r.For.Name]
	from, to := w.clusterQueueOf(job), w.clusterQueueOf(by)
	if from == to {
		return by.Priority >= job.Priority
	}
	policy, of := w.queues[to].Preemption, w.queues[from].Preemption.Standing
	return !of.Protected && (by.Priority > job.Priority && policy.Allows() || policy.Reclaim == preempt.Any ||
		of.Rank < policy.Rank)
}

// clusterQueueOf returns the ClusterQueue whose quota the job holds, or else the one that its LocalQueue points to.
func (w *world) clusterQueueOf(job WorkloadSet) string {
	if job.Admission != nil {
		return job.Admission.ClusterQueue
	}
	return w.locals[job.LocalKey()].ClusterQueue
}

// TestResizableListEqualsARebuiltOne: after any changes, the incremental list of resizable workloads equals one that
// is rebuilt.
func TestResizableListEqualsARebuiltOne(t *testing.T) {
	checkElastic(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			if rapid.Bool().Draw(t, "decides") {
				w.decide()
			}
			for _, name := range queueNames {
				q := w.engine.queues[name]
				if q.Family == nil || w.engine.routing.changed.Len()+w.engine.routing.relocated.Len() > 0 ||
					rapid.Bool().Draw(t, "not asked yet") {
					continue
				}
				got, want := w.engine.growths.ResizableOf(q), w.engine.growths.ListResizable(q)
				if !slices.EqualFunc(got.Jobs, want.Jobs, func(a, b elastic.Job) bool { return a.Equal(&b) }) ||
					!slices.Equal(got.Members, want.Members) || !slices.Equal(got.At, want.At) ||
					!slices.Equal(got.Grows, want.Grows) || !slices.Equal(got.Planned, want.Planned) ||
					!slices.EqualFunc(got.Each, want.Each, slices.Equal[quota.Vector]) {
					t.Fatalf("resizable workloads of %s = %+v, want %+v", q.Name, got, want)
				}
			}
		}
	})
}

// TestFewestPodsYield: the workloads that yield are those of the first step at which the waiting one fits, each step
// tried on nodes anew, and none of them yields more than is needed beside the others.
func TestFewestPodsYield(t *testing.T) {
	checkElastic(t, func(t *rapid.T, w *world) {
		e := w.engine
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			if rapid.Bool().Draw(t, "decides") {
				w.decide()
			}
			e.Arrange(e.growths.Now)
			if e.routing.changed.Len()+e.routing.relocated.Len() > 0 {
				continue
			}
			for _, name := range queueNames {
				for _, c := range e.queues[name].Classes {
					waits, q := e.workloads[c.Head().Key], c.Queue
					if q.Family == nil || len(q.Elastic) == 0 {
						continue
					}
					least, list := e.evaluator.FormOf(c).ReducedBy(e.evaluator.FormOf(c).Reducible()), e.growths.ResizableOf(q)
					y := list.YieldsTo(waits.Priority)
					fits := func(sizes []int32) (is bool) {
						e.growths.TryYields(q, list, func(trial *growth.YieldTrial) {
							trial.Release(sizes, func() {
								trial.TakeOffNodes()
								found := e.evaluator.Consider(waits, c, least)
								is = found.Verdict == state.Nominable || found.Verdict == state.Admissible
							})
						})
						return is
					}
					alone := e.evaluator.Consider(waits, c, least).Verdict
					if e.evaluator.FormOf(c).Reducible() > 0 && (alone == state.Admissible || alone == state.Nominable) {
						continue
					}
					var want []int32
					if y.Len() > 0 && fits(y.Sizes(y.Len())) {
						want = y.Sizes(state.Smallest(y.Len(), func(n int) bool { return fits(y.Sizes(n)) }))
						if fits(want) {
							want = list.Spare(want, fits)
						}
					}
					for i, job := range list.Jobs {
						if want == nil || want[i] == job.Size || alone == state.Admissible || alone == state.Nominable || w.nodes != nil {
							continue
						}
						more := slices.Clone(want)
						if more[i] = max(want[i]+1, job.Min); fits(more) {
							w.describe(t)
							t.Fatalf("%s: %s need not shrink from %d to %d", waits.Key, job.Key, job.Size, want[i])
						}
					}
					got, yields := e.evaluator.ByYielding(waits, c)
					if yields != (want != nil && fits(want)) {
						w.describe(t)
						t.Fatalf("%s: others yield = %v, want sizes %v", waits.Key, yields, want)
					}
					if !yields {
						continue
					}
					if victims, smaller := list.Changes(q, want); len(got.Victims) != len(victims) ||
						!slices.EqualFunc(got.Yields, smaller,
							func(a, b state.Yield) bool { return a.Workload == b.Workload && a.At == b.At && a.Given.Equal(b.Given) }) {
						t.Fatalf("%s: got yields %+v and victims %+v, want %+v and %+v", waits.Key, got.Yields, got.Victims,
							smaller, victims)
					}
				}
			}
		}
	})
}

// TestNoCapacityIsLeftForGrowth: once everything has settled, and long after the last resize, no job could grow.
func TestNoCapacityIsLeftForGrowth(t *testing.T) {
	checkElastic(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 50).Draw(t, "events") {
			w.step(t)
		}
		w.settle(t)
		w.wantNoneToGrow(t)
	})
}

// wantNoneToGrow fails if a job could grow.
func (w *world) wantNoneToGrow(t *rapid.T) {
	for _, q := range w.engine.queues {
		if q.Node == nil || q.Family == nil {
			continue
		}
		w.engine.holdBacks.ChargeAll(q.Family)
		for _, job := range w.engine.growths.ResizableOf(q).Members {
			at := job.ElasticSet()
			each := w.engine.ledgers.VectorOfPods(&job.Held.PodSets[at], 1)
			_, ok := w.engine.nodes.MoreOnNodes(job, at, 1, 0)
			if job.MayGrow() && job.Held.PodSets[at].Count < job.PodSets[0].Most() &&
				state.ReplicasFree(q.Node, each) > 0 && ok {
				w.describe(t)
				t.Fatalf("%s could grow in %s beyond %d", job.Key, q.Name, job.Held.PodSets[at].Count)
			}
		}
		w.engine.holdBacks.ReleaseAll(q.Family)
	}
}

// TestSettledJobsAreNotResized: no job is resized merely because time passes. Where a start is planned, others
// may pass it as those that should have ended by then run on.
func TestSettledJobsAreNotResized(t *testing.T) {
	checkElastic(t, func(t *rapid.T, w *world) {
		if w.options.AdmissionFairSharing != nil {
			return // in these worlds the order depends on time
		}
		for range rapid.IntRange(1, 50).Draw(t, "events") {
			w.step(t)
		}
		w.settle(t)
		for range 5 {
			w.clock = w.clock.Add(time.Hour)
			planned := slices.ContainsFunc(slices.Collect(maps.Values(w.engine.families)),
				func(f *state.Family) bool { return len(f.Reserved) > 0 })
			for _, d := range w.decide() {
				if planned {
					return
				}
				t.Fatalf("an hour later: got decisions %+v, want none", d)
			}
		}
	})
}
