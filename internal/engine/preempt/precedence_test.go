package preempt

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
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
		under   []string
		reasons string
	}{
		{"a", nil, []string{"b", "c"}, "a was not evicted; b was for it, and c for b"},
		{"b", []string{"a"}, []string{"c"}, "b was evicted for a, and c for b"},
		{"c", []string{"a", "b"}, nil, "c was evicted for b, and b for a; none was evicted for c"},
	} {
		if got := names(p.Over(key(tc.of))); !slices.Equal(got, tc.over) {
			t.Errorf("Over(%s) = %v, want %v: %s", tc.of, got, tc.over, tc.reasons)
		}
		if got := names(p.Under(key(tc.of))); !slices.Equal(got, tc.under) {
			t.Errorf("Under(%s) = %v, want %v: %s", tc.of, got, tc.under, tc.reasons)
		}
	}
	p.Forget(key("b"))
	if over, under := p.Over(key("c")), p.Under(key("a")); len(over)+len(under) != 0 {
		t.Errorf("after b was removed: Over(c) = %v and Under(a) = %v, want none", over, under)
	}
}

// names returns the sorted names of the workloads.
func names(keys sets.Set[order.Key]) (out []string) {
	for k := range keys {
		out = append(out, k.Name)
	}
	slices.Sort(out)
	return out
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
