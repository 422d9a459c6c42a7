package engine

import (
	"testing"
)

// TestFirstInOrderKeepsTheLastPiece: two queues wait for their own quota, of which a third has borrowed all but one
// piece. That piece is reserved for the first in order, whatever the order of creation or evaluation.
func TestFirstInOrderKeepsTheLastPiece(t *testing.T) {
	queues := []Event{defaultFlavor, queueOf("a", "lab", 2), queueOf("b", "lab", 2), queueOf("c", "lab", 0),
		localOf("a"), localOf("b"), localOf("c")}
	borrower := job("borrower", "c", 3, 1, 0, 0)
	for name, tc := range map[string]struct {
		largeA, largeB int // since when
		admitted       string
	}{
		"a has waited longer": {largeA: 1, largeB: 2, admitted: "smallA"},
		"b has waited longer": {largeA: 2, largeB: 1, admitted: "smallB"},
	} {
		for order, jobs := range map[string][]string{
			"a is created first": {"largeA", "largeB", "smallB", "smallA"},
			"b is created first": {"largeB", "largeA", "smallA", "smallB"},
		} {
			t.Run(name+", "+order, func(t *testing.T) {
				all := map[string]WorkloadSet{
					"largeA": job("largeA", "a", 2, 1, 0, tc.largeA), "smallA": job("smallA", "a", 1, 1, 0, 10),
					"largeB": job("largeB", "b", 2, 1, 0, tc.largeB), "smallB": job("smallB", "b", 1, 1, 0, 11),
				}
				e := New(Options{})
				decisionsAfter(e, append(queues, borrower)...)
				for _, name := range jobs {
					decisionsAfter(e, all[name])
				}
				// The large ones do not fit; the last piece is for the small one of the queue for which it is reserved.
				for _, name := range []string{"smallA", "smallB"} {
					if holds := e.Holds(Key{Namespace: "ns", Name: name}) != nil; holds != (name == tc.admitted) {
						t.Errorf("%s holds quota = %t, want %s admitted", name, holds, tc.admitted)
					}
				}
			})
		}
	}
}
