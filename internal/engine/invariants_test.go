package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/quota"
)

// world is an engine under random events, with what the API server would say.
type world struct {
	engine  *Engine
	log     []Event
	decided []Decision
	cpu     map[string]int64 // quota by queue; all of one cohort
	jobs    map[string]WorkloadSet
}

var queueNames = []string{"p", "q", "r"}

func newWorld(t *rapid.T) *world {
	w := &world{engine: New(), cpu: map[string]int64{}, jobs: map[string]WorkloadSet{}}
	w.apply(defaultFlavor)
	for _, name := range queueNames {
		w.setQueue(t, name)
		w.apply(localOf(name))
	}
	return w
}

func (w *world) setQueue(t *rapid.T, name string) {
	w.cpu[name] = rapid.Int64Range(0, 8).Draw(t, "quota of "+name)
	q := queueOf(name, "lab", w.cpu[name])
	if rapid.Bool().Draw(t, name+" is strict") {
		q = strict(q)
	}
	w.apply(q)
}

func (w *world) apply(ev Event) {
	w.log = append(w.log, ev)
	w.engine.Apply(ev)
}

func (w *world) decide() []Decision {
	out := w.engine.Decide(epoch)
	w.decided = append(w.decided, out...)
	return out
}

// step makes one random thing happen.
func (w *world) step(t *rapid.T) {
	names := make([]string, 0, len(w.jobs))
	for name := range w.jobs {
		names = append(names, name)
	}
	slices.Sort(names)
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind of event"); {
	case kind < 5 || len(names) == 0:
		name := fmt.Sprintf("j%d", len(w.log))
		ev := job(name, rapid.SampledFrom(queueNames).Draw(t, "queue"), rapid.Int32Range(0, 4).Draw(t, "pods"),
			rapid.Int64Range(0, 4).Draw(t, "cpu"), rapid.Int32Range(-1, 1).Draw(t, "priority"), len(w.log))
		w.jobs[name] = ev
		w.apply(ev)
	case kind < 7:
		name := rapid.SampledFrom(names).Draw(t, "ends")
		delete(w.jobs, name)
		w.apply(gone(name))
	case kind < 8:
		name := rapid.SampledFrom(names).Draw(t, "write failed")
		w.apply(AdmissionFailed{Key: w.jobs[name].Key, UID: w.jobs[name].UID})
	case kind < 9:
		name := rapid.SampledFrom(names).Draw(t, "confirmed")
		ev := w.jobs[name]
		ev.Admission = w.engine.Holds(ev.Key)
		w.jobs[name] = ev
		w.apply(ev)
	default:
		w.setQueue(t, rapid.SampledFrom(queueNames).Draw(t, "reconfigured"))
	}
}

func (w *world) heldBy(names ...string) int64 {
	var sum int64
	for _, name := range names {
		u, _ := w.engine.QueueUsage(name)
		sum += u.Used[quota.FlavorResource{Flavor: "default", Resource: "cpu"}]
	}
	return sum
}

// TestQuotaIsNeverExceededByADecision: whatever happens, a pass admits nothing that
// takes the cohort beyond its quota.
func TestQuotaIsNeverExceededByADecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			w.step(t)
			before := w.heldBy(queueNames...)
			w.decide()
			after := w.heldBy(queueNames...)
			if total := w.cpu["p"] + w.cpu["q"] + w.cpu["r"]; after > before && after > total {
				t.Fatalf("%d of %d cpu are held", after, total)
			}
		}
	})
}

// TestLedgerIsTheSumOfWhatIsHeld: the incremental sums equal those made from
// scratch.
func TestLedgerIsTheSumOfWhatIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			w.step(t)
			w.decide()
		}
		fr := quota.FlavorResource{Flavor: "default", Resource: "cpu"}
		want := map[string]int64{"p": 0, "q": 0, "r": 0}
		for _, j := range w.jobs {
			if held := w.engine.Holds(j.Key); held != nil {
				for _, ps := range held.PodSets {
					want[held.ClusterQueue] += ps.Usage["cpu"]
				}
			}
		}
		var fresh quota.Tree
		for _, name := range queueNames {
			fresh.SetQueue(name, "lab", w.engine.queues[name].Quotas)
			fresh.Add(name, fr, want[name])
		}
		for _, name := range queueNames {
			if got := w.heldBy(name); got != want[name] {
				t.Fatalf("ledger of %s has %d, workloads hold %d", name, got, want[name])
			}
			if got, want := w.engine.tree.Available(name, fr), fresh.Available(name, fr); got != want {
				t.Fatalf("%s has %d available, from scratch %d", name, got, want)
			}
		}
	})
}

// TestNothingThatFitsIsLeftWaiting: after a pass no head of a queue fits, and a
// second pass says nothing.
func TestNothingThatFitsIsLeftWaiting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			w.step(t)
		}
		w.decide()
		if again := w.decide(); len(again) != 0 {
			t.Fatalf("a second pass without news decided %v", again)
		}
		for _, q := range w.engine.queues {
			for _, waiting := range q.parked {
				if a, _ := w.engine.try(waiting, q); a != nil {
					t.Fatalf("%s fits in %s and waits", waiting.Key, q.Name)
				}
			}
			if head, ok := q.pending.Peek(); ok {
				if a, _ := w.engine.try(w.engine.workloads[head.Key], q); a != nil {
					t.Fatalf("%s is the head of %s, fits and waits", head.Key, q.Name)
				}
			}
		}
	})
}

// TestReplayGivesTheSameDecisions: the log of events alone reproduces every
// decision.
func TestReplayGivesTheSameDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			w.step(t)
		}
		want := w.decide()
		replayed := New()
		for _, ev := range w.log {
			replayed.Apply(ev)
		}
		if diff := cmp.Diff(want, replayed.Decide(epoch)); diff != "" {
			t.Fatalf("replay differs (-live +replayed):\n%s", diff)
		}
	})
}
