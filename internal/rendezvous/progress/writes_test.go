package progress

import (
	"fmt"
	"testing"
	"time"
)

// key is the key of the Workload with this name.
func key(name string) Key { return Key{Namespace: "ns", Name: name, UID: name} }

// written makes all writes that are due until the time, and returns them with their seconds.
func written(w *Writes, from, until time.Time, fails func(Write) bool) (out []string) {
	for now := from; !now.After(until); {
		next, ok, again := w.Next(now)
		switch {
		case ok && fails != nil && fails(next):
			out = append(out, fmt.Sprintf("%d: %s fails", int(now.Sub(start).Seconds()), next.Key.Name))
			w.Failed(next, now)
		case ok && next.End.IsZero():
			out = append(out, fmt.Sprintf("%d: remove %s", int(now.Sub(start).Seconds()), next.Key.Name))
		case ok:
			out = append(out, fmt.Sprintf("%d: %s %s", int(now.Sub(start).Seconds()), next.Key.Name, next.End.Sub(start)))
		case again.IsZero():
			return out
		default:
			now = again
		}
	}
	return out
}

func TestWritesAreMadeInOrderWithTheLatestValueOnceASecond(t *testing.T) {
	var w Writes
	w.Put(key("a"), Outlook{End: at(1, 0)})
	w.Put(key("b"), Outlook{End: at(1, 0)})
	w.Put(key("c"), Outlook{End: at(1, 0)})
	w.Put(key("a"), Outlook{End: at(2, 0)})
	w.Put(key("b"), Outlook{})
	w.Drop(key("c"))
	w.Put(key("d"), Outlook{End: at(4, 0)})
	got := fmt.Sprint(written(&w, start, at(1, 0), nil))
	if want := "[0: a 2m0s 1: remove b 2: d 4m0s]"; got != want {
		t.Errorf("writes %s, want %s", got, want)
	}
	if w.Waits(key("a")) || w.Waits(key("c")) {
		t.Error("what was written or dropped still waits")
	}
}

func TestWhatWasDroppedWaitsAtTheEndAgain(t *testing.T) {
	var w Writes
	for _, name := range []string{"a", "b"} {
		w.Put(key(name), Outlook{End: at(1, 0)})
	}
	w.Drop(key("a"))
	w.Put(key("a"), Outlook{End: at(2, 0)})
	if got, want := fmt.Sprint(written(&w, start, at(1, 0), nil)), "[0: b 1m0s 1: a 2m0s]"; got != want {
		t.Errorf("writes %s, want %s", got, want)
	}
}

// TestFailedWritesAreTriedAgainAndDelayNobody: the pauses of a write that fails double.
func TestFailedWritesAreTriedAgainAndDelayNobody(t *testing.T) {
	var w Writes
	w.Put(key("a"), Outlook{End: at(1, 0)})
	w.Put(key("b"), Outlook{End: at(1, 0)})
	tries := 0
	got := fmt.Sprint(written(&w, start, at(1, 0), func(write Write) bool {
		tries++
		return write.Key == key("a") && tries < 6
	}))
	if want := "[0: a fails 1: b 1m0s 2: a fails 6: a fails 14: a fails 30: a 1m0s]"; got != want {
		t.Errorf("writes %s, want %s", got, want)
	}
}

func TestAClockThatIsSetBackStopsNoWrites(t *testing.T) {
	var w Writes
	w.Put(key("a"), Outlook{End: at(1, 0)})
	w.Next(at(60, 0))
	w.Put(key("a"), Outlook{End: at(2, 0)})
	if _, ok, _ := w.Next(at(0, 0)); !ok {
		t.Error("a write waits for an hour because the clock was set back")
	}
}
