package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/durations"
)

// TestNewTreesPlanTheirStartsFirst: wide waits in the tree z for first to end, and late in the tree a comes after it. A
// new engine can evaluate few workloads in a pass, and z has many that fit on no node. Late passes neither while first
// runs, nor when it has just ended.
func TestNewTreesPlanTheirStartsFirst(t *testing.T) {
	limited := func(w WorkloadSet, limit time.Duration) WorkloadSet {
		w.Time = durations.Known{Limit: limit}
		return w
	}
	objects := slices.Concat(onNodes, []Event{node("a1", "a", 4)})
	for _, name := range []string{"a", "y", "z"} {
		q := queueOf(name, map[string]string{"y": "tree", "z": "tree"}[name], 100)
		q.Backfill = true
		objects = append(objects, q, localOf(name))
	}
	s := newScene(t, Options{}, objects...)
	s.happens(limited(job("first", "a", 1, 2, 0, 0), time.Hour))
	for i := range 9 {
		s.happens(job(fmt.Sprint("huge-", i), []string{"y", "z"}[i%2], 1, int64(5+i), 0, 1))
	}
	s.happens(limited(job("wide", "z", 1, 4, 0, 2), time.Hour))
	s.happens(limited(job("late", "a", 1, 2, 0, 3), 10*time.Hour))
	for _, first := range []bool{true, false} {
		for budget := 1; budget <= 16; budget++ {
			e := New(Options{})
			e.budget = budget
			for _, ev := range append([]Event{defaultFlavor}, objects...) {
				e.Apply(ev)
			}
			for _, name := range slices.Sorted(maps.Keys(s.jobs)) {
				if first || name != "first" {
					e.Apply(s.jobs[name])
				}
			}
			var admitted []string
			for _, d := range decideAll(e, s.now.Add(time.Minute)) {
				if d.Admit != nil {
					admitted = append(admitted, d.Key.Name)
				}
			}
			if want := map[bool][]string{true: nil, false: {"wide"}}[first]; !slices.Equal(admitted, want) {
				t.Errorf("first runs: %v; a pass evaluates %d: admitted %v, want %v", first, budget, admitted, want)
			}
		}
	}
}
