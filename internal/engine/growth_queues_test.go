package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// in returns the job in the LocalQueue of that name.
func in(queue string, w WorkloadSet) WorkloadSet { w.Queue = queue; return w }

// TestOfOwnersTheOneThatRestsWaits: where there is not enough for the own quota of two queues, a job that rests keeps
// none from one of the same priority that may grow at once, whichever queue comes first by name.
func TestOfOwnersTheOneThatRestsWaits(t *testing.T) {
	for _, names := range [][]string{{"p", "q"}, {"q", "p"}} {
		for priority, want := range map[int32][]int32{0: {2, 4}, 1: {4, 2}} {
			s := newScene(t, Options{Elastic: elastic.Policy{GrowAfter: 30 * time.Second}}, queueOf("p", "lab", 6),
				queueOf("q", "lab", 6), queueOf("r", "lab", 0), localOf("p"), localOf("q"), localOf("r"),
				job("borrows", "r", 6, 1, 0, 0), job("ends", "r", 2, 1, 0, 0), job("before", "r", 2, 1, 0, 0))
			s.happens(in(names[1], between("ready", 2, 6, 0, 1)))
			s.now = s.now.Add(29 * time.Second)
			s.happens(gone("before"), in(names[0], between("rests", 2, 6, priority, 2)))
			s.wantSizes("all is in use", []string{"rests", "ready"}, 2, 2)
			s.now = s.now.Add(time.Second)
			s.happens(gone("ends"))
			s.now = s.now.Add(29 * time.Second)
			s.happens()
			s.wantSizes("two were free, and later both have rested", []string{"rests", "ready"}, want...)
		}
	}
}

// besideAnOwner returns a scene in which two cpus of the own quota of queue owner are free for the job own of that
// queue, which rests. Those of the other queue may grow: one of two cpus, and one of another two that could displace it
// if that is asked for.
func besideAnOwner(t *testing.T, owner, other string, displaces bool) *scene {
	s := newScene(t, Options{Elastic: elastic.Policy{GrowAfter: 30 * time.Second}}, queueOf(owner, "lab", 4),
		queueOf(other, "lab", 4), localOf(owner), localOf(other), job("before", owner, 2, 1, 0, 0),
		job("ends", owner, 2, 1, 0, 0))
	s.happens(in(other, between("low", 2, 2, 0, 1)), in(other, between("high", 2, 8, 0, 2)))
	s.now = s.now.Add(29 * time.Second)
	s.happens(gone("before"), in(owner, between("own", 2, 4, 0, 3)))
	s.wantSizes("all is in use", []string{"low", "high", "own"}, 2, 2, 2)
	s.now = s.now.Add(time.Second)
	change := []Event{gone("ends")}
	if displaces {
		change = append(change, s.changed("high", func(w *Workload) { w.Priority = 1 }))
	}
	s.happens(change...)
	return s
}

// TestGrowthAtTheCostOfOthersLeavesOwnGrowth: a job that takes what one of lower priority has plans nothing of what a
// job of another queue will soon grow into of its own quota.
func TestGrowthAtTheCostOfOthersLeavesOwnGrowth(t *testing.T) {
	for _, names := range [][]string{{"p", "q"}, {"q", "p"}} {
		s := besideAnOwner(t, names[0], names[1], true)
		s.wantSizes("two are free, and the owner's job rests", []string{"low", "high", "own"}, 0, 4, 2)
		s.now = s.now.Add(29 * time.Second)
		s.happens()
		s.wantSizes("the owner's job has rested", []string{"low", "high", "own"}, 0, 4, 4)
	}
}

// TestOthersGrowOnceAnOwnerWillNot: what is kept for the growth of a queue's own job is given to others when that job
// does not want it any more, or may not have it.
func TestOthersGrowOnceAnOwnerWillNot(t *testing.T) {
	for name, change := range map[string]func(*scene) Event{
		"it ends": func(*scene) Event { return gone("own") },
		"it is deactivated": func(s *scene) Event {
			return s.changed("own", func(w *Workload) { w.Inactive = true })
		},
		"it wants no more": func(s *scene) Event {
			return s.changed("own", func(w *Workload) { w.PodSets[0].Wanted = 2 })
		},
		"its LocalQueue is stopped":   func(*scene) Event { l := localOf("p"); l.Stopped = true; return l },
		"its LocalQueue is deleted":   func(*scene) Event { return LocalQueueDeleted{localOf("p").Key} },
		"its ClusterQueue is stopped": func(*scene) Event { q := queueOf("p", "lab", 4); q.Stopped = true; return q },
	} {
		for _, displaces := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, displaces: %v", name, displaces), func(t *testing.T) {
				s := besideAnOwner(t, "p", "q", displaces)
				low, high, own := int32(2), int32(2), int32(2)
				if displaces {
					low, high = 0, 4
				}
				s.wantSizes("two are free, and the owner's job rests", []string{"low", "high", "own"}, low, high, own)
				ev := change(s)
				s.happens(ev)
				if displaces {
					s.now = s.now.Add(30 * time.Second)
					s.happens()
				}
				if _, ended := ev.(WorkloadGone); ended {
					high, own = high+2, 0
				}
				s.wantSizes(name, []string{"low", "high", "own"}, low, high+2, own)
			})
		}
	}
}

// newGrowthWorld returns a world whose queues are open and lend each other quota, for jobs that grow beside each other.
func newGrowthWorld(t *rapid.T) *world {
	var options Options
	if rapid.IntRange(0, 3).Draw(t, "fair sharing if 0") == 0 {
		options.FairSharing = &FairSharing{Strategies: []preempt.Strategy{preempt.LessThanOrEqualToFinalShare,
			preempt.LessThanInitialShare}}
	}
	w := emptyWorld(options)
	w.growth = true
	w.engine.budget = rapid.SampledFrom([]int{passBudget, passBudget, 4}).Draw(t, "budget of a pass")
	w.team = CohortSet{Cohort{Name: "team", Parent: "lab"}}
	w.apply(defaultFlavor)
	w.apply(w.team)
	for _, name := range namespaces {
		w.apply(NamespaceSet{Name: name})
	}
	if rapid.Bool().Draw(t, "on nodes") {
		w.nodes = &nodeWorld{nodes: map[string]NodeSet{}, pods: map[string]PodBound{}}
		for _, ev := range onNodes {
			w.apply(ev)
		}
		for _, name := range nodeNames {
			n := node(name, name[:1], rapid.Int64Range(1, 6).Draw(t, "cpu of "+name))
			w.nodes.nodes[name] = n
			w.apply(n)
		}
	}
	limit := func(of string) int64 {
		return rapid.SampledFrom([]int64{quota.Unlimited, quota.Unlimited, quota.Unlimited, 0, 2, 4}).Draw(t, of)
	}
	for _, name := range queueNames {
		q := queueOf(name, rapid.SampledFrom([]string{"lab", "lab", "team"}).Draw(t, "cohort of "+name),
			rapid.SampledFrom([]int64{0, 3, 4, 5, 6, 8}).Draw(t, "quota of "+name))
		for fr, l := range q.Quotas {
			l.Borrowing, l.Lending = limit(name+" borrows up to"), limit(name+" lends up to")
			q.Quotas[fr] = l
		}
		q.Strategy = rapid.SampledFrom([]Strategy{BestEffort, BestEffort, Strict}).Draw(t, "strategy of "+name)
		q.Preemption = preempt.Policy{WithinQueue: rapid.SampledFrom([]preempt.Rule{preempt.Never, preempt.LowerPriority}).
			Draw(t, name+" within"),
			Reclaim: rapid.SampledFrom([]preempt.Rule{preempt.Never, preempt.Never, preempt.LowerPriority, preempt.Any}).Draw(t,
				name+" reclaims")}
		w.queues[name] = q
		w.apply(q)
		for _, namespace := range namespaces {
			w.setLocal(LocalQueueSet{LocalQueue{Key: Key{Namespace: namespace, Name: name}, ClusterQueue: name}})
		}
	}
	return w
}

// growthStep makes one random change.
func (w *world) growthStep(t *rapid.T) {
	running := slices.DeleteFunc(w.names(), func(name string) bool { return w.jobs[name].Admission == nil })
	switch kind := rapid.IntRange(0, 11).Draw(t, "kind of event"); {
	case kind < 3 || len(running) == 0:
		name := fmt.Sprintf("j%03d", len(w.log))
		most := rapid.Int32Range(1, 8).Draw(t, "pods")
		ev := job(name, rapid.SampledFrom(queueNames).Draw(t, "queue"), most,
			rapid.SampledFrom([]int64{1, 1, 2}).Draw(t, "cpu"),
			rapid.Int32Range(0, rapid.SampledFrom([]int32{0, 2}).Draw(t, "highest priority")).Draw(t, "priority"), len(w.log))
		if ev.PodSets[0].MinCount = rapid.Int32Range(1, min(2, most)).Draw(t, "minimum"); rapid.IntRange(0, 3).Draw(t,
			"rigid if 0") > 0 {
			ev.PodSets[0].Elastic = rapid.SampledFrom([]float64{0.6, 0.85, 1}).Draw(t, "exponent")
		}
		w.submit(t, ev)
	case kind < 5:
		w.finish(rapid.SampledFrom(running).Draw(t, "finished job"))
	case kind < 6:
		for _, name := range w.names() {
			if w.jobs[name].Admission == nil {
				w.finish(name)
			}
		}
	case kind < 7 && len(w.open) > 0:
		w.write(rapid.IntRange(0, len(w.open)-1).Draw(t, "written"),
			rapid.SampledFrom([]answer{accepted, accepted, lost}).Draw(t, "answer"))
	case kind < 9:
		w.hold(t, rapid.SampledFrom(running).Draw(t, "held back"))
	case kind < 10:
		ev := w.jobs[rapid.SampledFrom(running).Draw(t, "of another priority")]
		ev.Priority = rapid.Int32Range(0, 2).Draw(t, "new priority")
		ev.Version++
		w.jobs[ev.Key.Name] = ev
		w.apply(ev)
	case kind < 11:
		w.clock = w.clock.Add(time.Duration(rapid.SampledFrom([]int{0, 4, 29, 300}).Draw(t, "time passes")) * time.Second)
	default:
		w.decide()
	}
	for range rapid.IntRange(0, 2).Draw(t, "rounds of writes") {
		w.decide()
		for len(w.open) > 0 {
			w.write(0, accepted)
		}
		w.settlePods()
		for _, name := range w.names() {
			w.observe(name)
		}
	}
}

func (w *world) finish(name string) {
	w.apply(WorkloadGone{w.jobs[name].Key})
	delete(w.jobs, name)
}
