package engine

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/state"
)

const (
	sampling = 5 * time.Minute
	halfLife = 10 * time.Minute
)

// RanksByUsage returns options that order ClusterQueues by usage with this half-life.
func byUsage(halfLife time.Duration) Options {
	return Options{AdmissionFairSharing: &AdmissionFairSharing{HalfLife: halfLife, Interval: sampling}}
}

// shared returns the ClusterQueue q with this amount of cpu and the LocalQueues a and b.
func shared(cpu int64) []Event {
	q := queueOf("q", "", cpu)
	q.ByUsage = true
	return []Event{q, toQ("a"), toQ("b")}
}

// toQ returns the LocalQueue ns/name, which points to the ClusterQueue q.
func toQ(name string) LocalQueueSet {
	return LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: name}, ClusterQueue: "q"}}
}

// withConsumption returns the LocalQueue with this amount of cpu as the recorded usage.
func withConsumption(l LocalQueueSet, cpu float64, at time.Time) LocalQueueSet {
	l.Consumed, l.ConsumedAt = fair.Consumption{"cpu": cpu}, at
	return l
}

// advance moves the clock, and returns the decisions that follow.
func (s *scene) advance(d time.Duration) []string {
	s.now = s.now.Add(d)
	return s.happens()
}

// consumed returns the recent usage of the LocalQueue, in thousandths of a core.
func (s *scene) consumed(name string) int64 {
	u, _ := s.engine.LocalQueueUsage(Key{Namespace: "ns", Name: name})
	if u.Consumption == nil {
		return -1
	}
	return int64(math.Round(1000 * u.Consumption.Resources["cpu"]))
}

func TestExplanationSaysWhetherUsageOrdersTheQueue(t *testing.T) {
	for want, options := range map[bool]Options{true: byUsage(halfLife), false: {}} {
		s := newScene(t, options, append(shared(2000), withConsumption(toQ("a"), 2, epoch))...)
		s.happens(holds("h", "q", 2000, 0), job("a1", "a", 1, 2000, 9, 0), job("b1", "b", 1, 2000, 0, 1))
		x, ok := s.engine.Explain(Key{Namespace: "ns", Name: "a1"})
		position := 1
		if want {
			position = 2
		}
		if !ok || x.ByUsage != want || x.Position != position {
			t.Errorf("ByUsage %t, position %d; want %t, %d", x.ByUsage, x.Position, want, position)
		}
	}
}

func TestUsageDecaysByTheHalfLife(t *testing.T) {
	s := newScene(t, byUsage(halfLife), append(shared(4000), withConsumption(toQ("a"), 8, epoch))...)
	if due := s.engine.Due(); !due.Equal(epoch.Add(sampling)) {
		t.Fatalf("next pass due at %v, want after one sampling interval", due)
	}
	for _, want := range []int64{5657, 4000, 2828, 2000} {
		s.advance(sampling)
		if got := s.consumed("a"); got != want {
			t.Errorf("after %v: consumption = %d, want %d", s.now.Sub(epoch), got, want)
		}
	}
	s.happens(job("a1", "a", 1, 4000, 0, 0)) // approaches constant usage
	for range 100 {
		s.advance(sampling)
	}
	if got := s.consumed("a"); got != 4000 {
		t.Errorf("consumption = %d, want 4000 in the end", got)
	}
}

func TestDecayedUsageNeedsNoMoreSamples(t *testing.T) {
	s := newScene(t, byUsage(halfLife), append(shared(4000), withConsumption(toQ("a"), 8, epoch))...)
	s.engine.TakeChangedQueues()
	for range 100 {
		s.advance(sampling)
	}
	if got := s.consumed("a"); got != 0 {
		t.Errorf("consumption = %d, want 0", got)
	}
	if due := s.engine.Due(); !due.IsZero() {
		t.Errorf("next pass due at %v, want none", due)
	}
	if _, changed := s.engine.TakeChangedQueues(); len(changed) > 0 {
		t.Errorf("the status of LocalQueues %v changes, want none without usage", changed)
	}
}

// TestEachAdmissionPaysForOneInterval: each admission is charged for one sampling interval, whether or not the workload
// still exists at the next sample, and however often the admission was decided.
func TestEachAdmissionPaysForOneInterval(t *testing.T) {
	const paid = 293 // of a core, for half a half-life
	s := newScene(t, byUsage(halfLife), shared(4000)...)
	s.happens(job("a1", "a", 1, 1000, 0, 0), job("b1", "b", 1, 1000, 0, 0))
	s.advance(time.Minute)
	s.happens(gone("b1"))
	s.advance(sampling)
	if a, b := s.consumed("a"), s.consumed("b"); a != paid || b != paid {
		t.Errorf("the running workload was charged %d, the deleted one %d, want %d each", a, b, paid)
	}
	if l := s.engine.localQueues[Key{Namespace: "ns", Name: "a"}]; len(l.Entered) > 0 || len(l.Prepaid) > 0 {
		t.Errorf("open charges = %v and %v, want none after the sample", l.Entered, l.Prepaid)
	}
}

func TestUnwrittenAdmissionIsNotCharged(t *testing.T) {
	e := New(byUsage(halfLife))
	e.Apply(defaultFlavor)
	for _, ev := range append(shared(1000), job("a1", "a", 1, 1000, 0, 0)) {
		e.Apply(ev)
	}
	l := e.localQueues[Key{Namespace: "ns", Name: "a"}]
	for range 3 {
		decideAll(e, epoch)
		if len(l.Entered) != 1 || l.Standing == 0 {
			t.Fatalf("while the write is open: entered = %v, standing = %v, want one charge", l.Entered, l.Standing)
		}
		e.Apply(Failed{Key: Key{Namespace: "ns", Name: "a1"}, UID: "a1-uid"})
		if len(l.Entered) != 0 || l.Standing != 0 {
			t.Fatalf("after the write failed: entered = %v, standing = %v, want no charge", l.Entered, l.Standing)
		}
	}
}

func TestClockSetBackDoesNotStopSampling(t *testing.T) {
	s := newScene(t, byUsage(halfLife), append(shared(4000), withConsumption(toQ("a"), 8, epoch))...)
	s.advance(-time.Hour)
	if due := s.engine.Due(); due.After(s.now.Add(sampling)) {
		t.Errorf("at %v: next pass due at %v, want within one sampling interval", s.now, due)
	}
	s.advance(sampling)
	if got := s.consumed("a"); got != 8000 {
		t.Errorf("consumption = %d, want 8000", got)
	}
}

// TestRestartRemembersUsage: an engine that starts from the statuses has the same consumption as the one before.
func TestRestartRemembersUsage(t *testing.T) {
	s := newScene(t, byUsage(halfLife), shared(4000)...)
	s.happens(job("a1", "a", 1, 1000, 0, 0))
	s.advance(sampling)
	u, _ := s.engine.LocalQueueUsage(Key{Namespace: "ns", Name: "a"})
	again := toQ("a")
	again.Consumed, again.ConsumedAt = u.Consumption.Resources, u.Consumption.At
	fresh := newScene(t, byUsage(halfLife))
	fresh.now = s.now
	fresh.happens(append(shared(4000), again, s.jobs["a1"])...)
	for range 3 {
		s.advance(sampling)
		fresh.advance(sampling)
		if was, is := s.consumed("a"), fresh.consumed("a"); was != is {
			t.Errorf("consumption after a restart = %d, want %d", is, was)
		}
	}
	s.happens(again) // a stale event
	if was, is := s.consumed("a"), fresh.consumed("a"); was != is {
		t.Errorf("consumption after a stale event: %d before the restart, %d after", was, is)
	}
}

// TestQueuesStayInOrderOfUsage: after any changes, the first of the waiting classes comes before all others.
func TestQueuesStayInOrderOfUsage(t *testing.T) {
	isFirst := func(t *rapid.T, w *world, first *state.Class, all ...*state.Class) {
		for _, c := range all {
			if c.Before(&first.Class) && !c.Queue.Waits.Backfill { // which has an order of its own behind a planned start
				w.describe(t)
				t.Fatalf("%+v is first in %s, want %+v", first.Turn(), c.Queue.Name, c.Turn())
			}
		}
	}
	checkSmall(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			for _, q := range w.engine.queues {
				for _, c := range q.Waits.All() {
					isFirst(t, w, state.ClassOf(q.Waits.First()), state.ClassOf(c))
				}
				if q.Entitled.Len() > 0 {
					isFirst(t, w, q.Entitled.First(), q.Entitled.All()...)
				}
			}
		}
	})
}

// BenchmarkByUsage admits all workloads of many LocalQueues that share a ClusterQueue by their usage.
func BenchmarkByUsage(b *testing.B) {
	for _, locals := range []int{100, 1000, 4000} {
		b.Run(fmt.Sprintf("LocalQueues=%d", locals), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				e := New(byUsage(halfLife))
				e.Apply(defaultFlavor)
				for _, ev := range shared(int64(locals) * 15) {
					e.Apply(ev)
				}
				for i := range locals {
					name := fmt.Sprint("l", i)
					e.Apply(toQ(name))
					for cpu := range int64(5) {
						e.Apply(job(fmt.Sprint(name, "-", cpu), name, 1, cpu+1, 0, i))
					}
				}
				b.StartTimer()
				if got := len(decideAll(e, epoch)); got != 5*locals {
					b.Fatalf("%d decisions, want %d", got, 5*locals)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(5*locals), "ns/decision")
		})
	}
}

// TestLocalQueuesShareAClusterQueueEvenly: two LocalQueues that always have equal work get half each, even if one has
// all the priority; and a log of the events replays.
func TestLocalQueuesShareAClusterQueueEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options := byUsage(rapid.SampledFrom([]time.Duration{halfLife, time.Hour, 24 * time.Hour}).Draw(t, "half-life"))
		slots := int64(rapid.IntRange(1, 4).Draw(t, "slots"))
		w := emptyWorld(options)
		w.apply(defaultFlavor)
		for _, ev := range shared(slots) {
			w.apply(ev)
		}
		for i := range 50 {
			w.apply(job(fmt.Sprint("a", i), "a", 1, 1, 5, i))
			w.apply(job(fmt.Sprint("b", i), "b", 1, 1, 0, i))
		}
		admitted, running := map[string]int{}, []string{}
		lasts := time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds")) * time.Second
		for range 40 {
			w.clock = w.clock.Add(lasts)
			for _, d := range w.decide() {
				if d.Admit != nil {
					admitted[d.Key.Name[:1]]++
					running = append(running, d.Key.Name)
				}
			}
			w.apply(gone(running[0])) // the oldest
			running = running[1:]
		}
		if difference := admitted["a"] - admitted["b"]; difference < -3 || difference > 3 {
			t.Fatalf("admitted %v, want about as many of each LocalQueue", admitted)
		}
		w.checkReplay(t)
	})
}
