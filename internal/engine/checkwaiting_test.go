package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// missedWaiting evaluates all classes that wait, as CheckWaiting does one by one, and returns the workloads that
// CheckWaiting would find. This does not count as evaluations.
func missedWaiting(e *Engine) (missed []Key) {
	if e.Busy() {
		return nil
	}
	before := e.evaluator.Evaluations
	for _, q := range e.queues {
		for _, c := range q.Classes {
			if c.IsBlocked() && e.mayBeNext(&c.Class) && e.reevaluate(c).Verdict != state.Hopeless {
				missed = append(missed, c.Head().Key)
			}
		}
	}
	e.evaluator.Evaluations = before
	return append(missed, e.missedFamilies()...)
}

// TestSafetyNetFindsWhatTheEngineMissed: a class that nothing has made ready although it fits is found within as many
// checks as there are blocked classes, and admitted then.
func TestSafetyNetFindsWhatTheEngineMissed(t *testing.T) {
	s := newScene(t, Options{CheckWaitingEvery: time.Second}, queueOf("q", "", 4), localOf("q"),
		job("runs", "q", 4, 1, 0, 0))
	s.happens(job("large", "q", 4, 1, 0, 1), job("small", "q", 1, 1, 0, 2))
	f := s.engine.queues["q"].Family
	f.Waits = waiting.NewFamily(waitsOf(f.Queues), f.Enqueue) // it forgets who waits for what
	s.engine.Apply(gone("runs"))
	s.engine.Apply(job("other", "q", 3, 1, 1, 3))
	if got := decideAll(s.engine, s.now); len(got) != 1 || got[0].Admit == nil {
		t.Fatalf("%d decisions, want the other job admitted alone", len(got))
	}
	var missed []Key
	for range 2 { // there are two blocked classes
		found, _ := s.engine.CheckWaiting(s.now)
		missed = append(missed, found...)
		if _, checked := s.engine.CheckWaiting(s.now.Add(500 * time.Millisecond)); checked {
			t.Error("checked half a second after the last check, want no check")
		}
		if due := s.engine.CheckDue(); !due.Equal(s.now.Add(time.Second)) {
			t.Errorf("the next check is due at %v, want %v", due, s.now.Add(time.Second))
		}
		if len(missed) > 0 {
			break
		}
		s.now = s.now.Add(time.Second)
	}
	if want := []Key{{Namespace: "ns", Name: "small"}}; !slices.Equal(missed, want) {
		t.Fatalf("missed %v, want %v", missed, want)
	}
	if !s.engine.Busy() {
		t.Error("the engine rests, want it to evaluate what was missed")
	}
	s.want("the next pass", s.happens(), "admit small in q")
}

// TestSafetyNetIsOffByDefault: no evaluation is made that was not asked for.
func TestSafetyNetIsOffByDefault(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 1), localOf("q"), job("runs", "q", 1, 1, 0, 0),
		job("waits", "q", 1, 1, 0, 1))
	before := s.engine.evaluator.Evaluations
	s.engine.CheckWaiting(s.now)
	if s.engine.evaluator.Evaluations != before || !s.engine.CheckDue().IsZero() {
		t.Error("a class was evaluated, or a check is due, want none")
	}
}
