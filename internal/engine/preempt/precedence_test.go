package preempt

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/order"
)

func TestEvictedWorkloadNeverEvictsItsPreemptor(t *testing.T) {
	var p Precedence
	p.Note(key("a"), key("b"))
	p.Note(key("b"), key("c"))
	for _, tc := range []struct {
		of      string
		over    []string
		reasons string
	}{
		{"a", nil, "a was not evicted"},
		{"b", []string{"a"}, "b was evicted for a"},
		{"c", []string{"a", "b"}, "c was evicted for b, and b for a"},
	} {
		var got []string
		for k := range p.Over(key(tc.of)) {
			got = append(got, k.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.over) {
			t.Errorf("Over(%s) = %v, want %v: %s", tc.of, got, tc.over, tc.reasons)
		}
	}
	p.Forget(key("b"))
	if over := p.Over(key("c")); len(over) != 0 {
		t.Errorf("after b was removed: Over(c) = %v, want none", over)
	}
}

// TestPrecedenceHasNoCycles: after any records that the rules allow, and any removals, no workload has precedence over
// itself, and no empty sets are stored.
func TestPrecedenceHasNoCycles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Precedence
		name := rapid.Custom(func(t *rapid.T) order.Key { return key(fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "workload"))) })
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			winner, loser := name.Draw(t, "winner"), name.Draw(t, "loser")
			switch {
			case rapid.IntRange(0, 5).Draw(t, "forget") == 0:
				p.Forget(winner)
			case winner != loser && !p.Over(winner).Has(loser):
				p.Note(winner, loser)
			}
			for i := range 6 {
				if k := key(fmt.Sprint(i)); p.Over(k).Has(k) {
					t.Fatalf("%s has precedence over itself", k)
				}
			}
		}
		for i := range 6 {
			p.Forget(key(fmt.Sprint(i)))
		}
		if len(p.winners) != 0 || len(p.losers) != 0 {
			t.Fatalf("after all were removed: winners = %v and losers = %v, want none", p.winners, p.losers)
		}
	})
}
