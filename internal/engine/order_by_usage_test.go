package engine

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/quota"
)

const (
	sampling = 5 * time.Minute
	halfLife = 10 * time.Minute
)

func byUsage(halfLife time.Duration) Options {
	return Options{AdmissionFairSharing: &AdmissionFairSharing{HalfLife: halfLife, Interval: sampling}}
}

// shared returns the ClusterQueue q with this amount of cpu and the LocalQueues a and b.
func shared(cpu int64) []Event {
	q := queueOf("q", "", cpu)
	q.ByUsage = true
	return []Event{q, through("a"), through("b")}
}

func through(name string) LocalQueueSet {
	return LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: name}, ClusterQueue: "q"}}
}

func remembering(l LocalQueueSet, cpu float64, at time.Time) LocalQueueSet {
	l.Consumed, l.ConsumedAt = fair.Consumption{"cpu": cpu}, at
	return l
}

func (s *scene) passes(d time.Duration) []string {
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

func TestOrderByUsage(t *testing.T) {
	light := through("a")
	light.Weight = weight(quota.One / 10)
	weightless := through("a")
	weightless.Weight = weight(0)
	notAsked := queueOf("q", "", 2000)
	for name, tc := range map[string]struct {
		given []Event
		want  []string
	}{
		"less usage goes first, whatever the priority": {
			given: []Event{remembering(through("a"), 2, epoch), remembering(through("b"), 1, epoch), job("a1", "a", 1, 2000, 9, 0), job("b1", "b", 1, 2000, 0, 1)},
			want:  []string{"admit b1 in q", "a1 waits: WaitingForQuota"},
		},
		"of equal usage the higher priority goes first": {
			given: []Event{job("a1", "a", 1, 2000, 0, 0), job("b1", "b", 1, 2000, 1, 1)},
			want:  []string{"admit b1 in q", "a1 waits: WaitingForQuota"},
		},
		"within a LocalQueue priority and time count": {
			given: []Event{job("a1", "a", 1, 2000, 0, 0), job("a2", "a", 1, 2000, 1, 1)},
			want:  []string{"admit a2 in q", "a1 waits: WaitingForQuota"},
		},
		"admissions pay in advance, so that none gets all at once": {
			given: []Event{job("a1", "a", 1, 500, 9, 0), job("a2", "a", 1, 500, 9, 1), job("b1", "b", 1, 500, 0, 2), job("b2", "b", 1, 500, 0, 3)},
			want:  []string{"admit a1 in q", "admit b1 in q", "admit a2 in q", "admit b2 in q"},
		},
		"weights count": {
			given: []Event{light, remembering(through("b"), 3, epoch), remembering(light, 1, epoch), job("a1", "a", 1, 2000, 0, 0), job("b1", "b", 1, 2000, 0, 1)},
			want:  []string{"admit b1 in q", "a1 waits: WaitingForQuota"},
		},
		"the weight 0 goes last": {
			given: []Event{weightless, remembering(through("b"), 1000, epoch), job("a1", "a", 1, 2000, 9, 0), job("b1", "b", 1, 2000, 0, 1)},
			want:  []string{"admit b1 in q", "a1 waits: WaitingForQuota"},
		},
		"usage from statuses is compared as of one time": {
			given: []Event{remembering(through("a"), 2, epoch), remembering(through("b"), 3, epoch.Add(-2*halfLife)), job("a1", "a", 1, 2000, 9, 0), job("b1", "b", 1, 2000, 0, 1)},
			want:  []string{"admit b1 in q", "a1 waits: WaitingForQuota"},
		},
		"a ClusterQueue that does not ask for it goes by priority": {
			given: []Event{notAsked, remembering(through("a"), 2, epoch), job("a1", "a", 1, 2000, 9, 0), job("b1", "b", 1, 2000, 0, 1)},
			want:  []string{"admit a1 in q", "b1 waits: WaitingForQuota"},
		},
		"less usage passes a strict head": {
			given: []Event{strict(shared(2000)[0].(ClusterQueueSet)), remembering(through("a"), 2, epoch), job("a1", "a", 1, 3000, 9, 0), job("b1", "b", 1, 2000, 0, 1)},
			want:  []string{"admit b1 in q", "a1 waits: ExceedsMaxQuota"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, byUsage(halfLife))
			s.want("decided", s.happens(append(shared(2000), tc.given...)...), tc.want...)
		})
	}
}

func TestExplanationSaysWhetherUsageOrdersTheQueue(t *testing.T) {
	for want, options := range map[bool]Options{true: byUsage(halfLife), false: {}} {
		s := newScene(t, options, append(shared(2000), remembering(through("a"), 2, epoch))...)
		s.happens(holds("h", "q", 2000, 0), job("a1", "a", 1, 2000, 9, 0), job("b1", "b", 1, 2000, 0, 1))
		x, ok := s.engine.Explain(Key{Namespace: "ns", Name: "a1"})
		position := 1
		if want {
			position = 2
		}
		if !ok || x.ByUsage != want || x.Position != position {
			t.Errorf("by use %t, position %d; want %t, %d", x.ByUsage, x.Position, want, position)
		}
	}
}

func TestUsageDecaysByTheHalfLife(t *testing.T) {
	s := newScene(t, byUsage(halfLife), append(shared(4000), remembering(through("a"), 8, epoch))...)
	if due := s.engine.Due(); !due.Equal(epoch.Add(sampling)) {
		t.Fatalf("due at %v", due)
	}
	for _, want := range []int64{5657, 4000, 2828, 2000} {
		s.passes(sampling)
		if got := s.consumed("a"); got != want {
			t.Errorf("at %v it is %d, want %d", s.now.Sub(epoch), got, want)
		}
	}
	s.happens(job("a1", "a", 1, 4000, 0, 0)) // close to what is used all the time
	for range 100 {
		s.passes(sampling)
	}
	if got := s.consumed("a"); got != 4000 {
		t.Errorf("in the end it is %d", got)
	}
}

func TestDecayedUsageNeedsNoMoreSamples(t *testing.T) {
	s := newScene(t, byUsage(halfLife), append(shared(4000), remembering(through("a"), 8, epoch))...)
	s.engine.PopChangedQueues()
	for range 100 {
		s.passes(sampling)
	}
	if got := s.consumed("a"); got != 0 {
		t.Errorf("it is %d", got)
	}
	if due := s.engine.Due(); !due.IsZero() {
		t.Errorf("still due at %v", due)
	}
	if _, touched := s.engine.PopChangedQueues(); len(touched) > 0 {
		t.Errorf("the status of %v changes without usage", touched)
	}
}

// TestEachAdmissionPaysForOneInterval: whether or not it still exists at the next sample, and however often it was
// decided.
func TestEachAdmissionPaysForOneInterval(t *testing.T) {
	const paid = 293 // of a core, for half a half-life
	s := newScene(t, byUsage(halfLife), shared(4000)...)
	s.happens(job("a1", "a", 1, 1000, 0, 0), job("b1", "b", 1, 1000, 0, 0))
	s.passes(time.Minute)
	s.happens(gone("b1"))
	s.passes(sampling)
	if a, b := s.consumed("a"), s.consumed("b"); a != paid || b != paid {
		t.Errorf("who stayed has paid %d, who went %d", a, b)
	}
	if l := s.engine.localQueues[Key{Namespace: "ns", Name: "a"}]; len(l.entered) > 0 || len(l.prepaid) > 0 {
		t.Errorf("it owes yet: %v %v", l.entered, l.prepaid)
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
		if len(l.entered) != 1 || l.standing == 0 {
			t.Fatalf("it has entered %v and stands at %v", l.entered, l.standing)
		}
		e.Apply(Failed{Key: Key{Namespace: "ns", Name: "a1"}, UID: "a1-uid"})
		if len(l.entered) != 0 || l.standing != 0 {
			t.Fatalf("it has entered %v and stands at %v", l.entered, l.standing)
		}
	}
}

func TestWithoutAHalfLifeOnlyPresentUsageCounts(t *testing.T) {
	s := newScene(t, byUsage(0), append(shared(2000), remembering(through("a"), 9, epoch))...)
	s.happens(job("b1", "b", 1, 1000, 0, 0))
	s.want("b uses something, a nothing", s.happens(job("a1", "a", 1, 1000, 0, 9), job("b2", "b", 1, 1000, 9, 1)), "admit a1 in q", "b2 waits: WaitingForQuota")
	s.want("now b uses nothing", s.happens(job("a2", "a", 1, 1000, 9, 2), gone("b1")), "admit b2 in q", "a2 waits: WaitingForQuota")
}

func TestClockSetBackDoesNotStopSampling(t *testing.T) {
	s := newScene(t, byUsage(halfLife), append(shared(4000), remembering(through("a"), 8, epoch))...)
	s.passes(-time.Hour)
	if due := s.engine.Due(); due.After(s.now.Add(sampling)) {
		t.Errorf("at %v due at %v", s.now, due)
	}
	s.passes(sampling)
	if got := s.consumed("a"); got != 8000 {
		t.Errorf("it is %d", got)
	}
}

// TestRestartRemembersUsage: an engine that starts from the statuses has the same standings as the one before.
func TestRestartRemembersUsage(t *testing.T) {
	s := newScene(t, byUsage(halfLife), shared(4000)...)
	s.happens(job("a1", "a", 1, 1000, 0, 0))
	s.passes(sampling)
	u, _ := s.engine.LocalQueueUsage(Key{Namespace: "ns", Name: "a"})
	again := through("a")
	again.Consumed, again.ConsumedAt = u.Consumption.Resources, u.Consumption.At
	fresh := newScene(t, byUsage(halfLife))
	fresh.now = s.now
	fresh.happens(append(shared(4000), again, s.jobs["a1"])...)
	for range 3 {
		s.passes(sampling)
		fresh.passes(sampling)
		if was, is := s.consumed("a"), fresh.consumed("a"); was != is {
			t.Errorf("after a restart it is %d, and would have been %d", is, was)
		}
	}
	s.happens(again) // a stale event
	if was, is := s.consumed("a"), fresh.consumed("a"); was != is {
		t.Errorf("old news make %d of %d", was, is)
	}
}

// TestLocalQueuesShareAClusterQueueEvenly: each of two that always have equal work gets half, even if one has all the
// priority; and a log of it replays.
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
			t.Fatalf("admitted %v", admitted)
		}
		replayed := New(options)
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
