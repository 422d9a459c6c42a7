package engine

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGiganticAmounts(t *testing.T) {
	const gigantic = math.MaxInt64
	for name, tc := range map[string]struct {
		quota    int64
		requests Event
		want     []string
	}{
		"a pod that requests the largest amount": {4, job("a", "q", 1, gigantic, 0, 0),
			[]string{"a waits: ExceedsMaxQuota"}},
		"the largest number of such pods": {4, job("a", "q", math.MaxInt32, gigantic, 0, 0),
			[]string{"a waits: ExceedsMaxQuota"}},
		"a product that overflows": {4, job("a", "q", math.MaxInt32, gigantic/2, 0, 0),
			[]string{"a waits: ExceedsMaxQuota"}},
		"a minimum below the largest number of pods": {4, smaller(job("a", "q", math.MaxInt32, 1, 0, 0), 1),
			[]string{"admit a in q, 4 of 2147483647 main"}},
		"a quota of the largest amount": {gigantic, job("a", "q", 2, gigantic, 0, 0), []string{"admit a in q"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, queueOf("q", "lab", tc.quota), queueOf("p", "lab", 0), localOf("q"), localOf("p"))
			s.want("the events", s.happens(tc.requests), tc.want...)
			s.happens(gone("a"))
			s.want("another workload arrives", s.happens(job("b", "q", 1, tc.quota, 0, 1)), "admit b in q")
			s.happens(gone("b"))
			if u, _ := s.engine.QueueUsage("q"); len(u.Reserved) != 0 {
				t.Errorf("reserved = %v after all workloads are gone, want none", u.Reserved)
			}
		})
	}
}

// TestResultOfAnEarlierWriteDoesNotConfirmALaterDecision: an eviction was written, and the quota was released and
// given out again before the result of the write was reported.
func TestResultOfAnEarlierWriteDoesNotConfirmALaterDecision(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("a", "q", 4, 1, 0, 0))
	s.engine.Apply(job("high", "q", 4, 1, 5, 1))
	evict := decideAll(s.engine, s.now)[0]
	s.jobs["a"] = s.changed("a", func(w *Workload) { w.Version++; w.Evicted = true })
	late := Written{Key: evict.Key, UID: evict.UID, Version: s.jobs["a"].Version}
	s.engine.Apply(s.jobs["a"])
	s.engine.Apply(gone("high"))
	a := s.stopped("a")
	a.Version++
	s.engine.Apply(a)
	if again := decideAll(s.engine, s.now); len(again) != 1 || again[0].Admit == nil {
		t.Fatalf("got decisions %+v, want one admission", again)
	}
	s.engine.Apply(late)
	if s.engine.Holds(a.Key) == nil {
		t.Error("the workload lost its quota while its admission was being written")
	}
}

// TestFailureOfAnEarlierWriteDoesNotUndoALaterDecision: as above, but the eviction came too late and was not written.
// The writer reports that it dropped the eviction.
func TestFailureOfAnEarlierWriteDoesNotUndoALaterDecision(t *testing.T) {
	for name, late := range map[string]func(d Decision) Event{
		"failed":      func(d Decision) Event { return Failed{Key: d.Key, UID: d.UID, Serial: d.Serial} },
		"refused":     func(d Decision) Event { return Refused{Key: d.Key, UID: d.UID, Serial: d.Serial, At: epoch} },
		"written ago": func(d Decision) Event { return Written{Key: d.Key, UID: d.UID, Serial: d.Serial, Version: 100} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("a", "q", 4, 1, 0, 0))
			s.engine.Apply(job("high", "q", 4, 1, 5, 1))
			evict := decideAll(s.engine, s.now)[0]
			s.engine.TakeSuperseded()
			s.engine.Apply(gone("high"))
			a := s.stopped("a")
			a.Version++
			s.engine.Apply(a)
			again := decideAll(s.engine, s.now)
			if len(again) != 1 || again[0].Admit == nil {
				t.Fatalf("got decisions %+v, want one admission", again)
			}
			if diff := cmp.Diff(map[Key]int64{evict.Key: evict.Serial}, s.engine.TakeSuperseded()); diff != "" {
				t.Errorf("superseded (-want +got):\n%s", diff)
			}
			s.engine.Apply(late(evict))
			if got := decideAll(s.engine, s.now); len(got) != 0 || s.engine.Holds(a.Key) == nil {
				t.Errorf("the workload lost its quota while its admission was being written; decisions %+v", got)
			}
			s.engine.Apply(Failed{Key: a.Key, UID: a.UID, Serial: again[0].Serial})
			if got := decideAll(s.engine, s.now); len(got) != 1 || got[0].Admit == nil {
				t.Errorf("after the admission failed: got decisions %+v, want it decided again", got)
			}
		})
	}
}
