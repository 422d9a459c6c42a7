package decisions

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/engine"
)

func TestTheMostUrgentIsWrittenFirst(t *testing.T) {
	urgency := map[string]int32{"low": -1, "first": 5, "second": 5, "high": 9}
	q := newUrgencyQueue(func(key engine.Key) int32 { return urgency[key.Name] })
	add := func(name string) { q.Push(engine.Key{Name: name}) }
	for _, name := range []string{"low", "first", "high", "second", "unknown"} {
		add(name)
	}
	take := func() string { return q.Pop().Name }
	got := []string{take()}
	urgency["low"] = 7
	q.Touch(engine.Key{Name: "low"})
	add("high")
	for q.Len() > 0 {
		got = append(got, take())
	}
	if diff := cmp.Diff([]string{"high", "high", "low", "first", "second", "unknown"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestLessUrgentDecisionsDoNotStarve: they are written even if urgent decisions keep coming.
func TestLessUrgentDecisionsDoNotStarve(t *testing.T) {
	q := newUrgencyQueue(func(key engine.Key) int32 {
		if key.Name == "low" {
			return 0
		}
		return 1
	})
	q.Push(engine.Key{Name: "low"})
	for i := range oldestEvery {
		q.Push(engine.Key{Name: "high", Namespace: fmt.Sprint(i)})
		if key := q.Pop(); key.Name == "low" {
			return
		}
	}
	t.Errorf("the less urgent decision still waits after %d others", oldestEvery)
}
