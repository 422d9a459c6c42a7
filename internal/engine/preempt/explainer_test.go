package preempt

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/quota"
)

// countingRoom counts the trials that remove a workload from its nodes.
type countingRoom struct{ without int }

func (r *countingRoom) Try(f func())           { f() }
func (r *countingRoom) Without(*Holder, int32) { r.without++ }
func (r *countingRoom) Fits() bool             { return true }

// TestCouldStayWithinIsComputedOnce: the result is the same for each of maybe thousands of holders.
func TestCouldStayWithinIsComputedOnce(t *testing.T) {
	l := newLab().queue("q", "lab", 2).queue("p", "lab", 0).queue("lender", "lab", 3).
		runs("q", "own", 1, 0).runs("p", "a", 1, 0).runs("p", "b", 1, 0).runs("p", "c", 1, 0)
	sortHolders(l)
	room := &countingRoom{}
	preemptor := l.preemptor("q", Policy{WithinQueue: LowerPriority, Reclaim: Any}, 2)
	preemptor.Short, preemptor.Nodes = []quota.Index{l.tree.Index(cpu)}, room
	explainer := NewExplainer(&l.tree, preemptor, func(n *quota.Node) []*Holder { return l.holders[n.Name()] })
	for _, h := range l.holders["p"] {
		if why := explainer.Why(h, l.tree.Queue("p")); why != "" {
			t.Errorf("Why(%s) = %q, want that it may be evicted", h.Key.Name, why)
		}
	}
	if room.without != 1 {
		t.Errorf("the holder of the queue was removed from its nodes %d times, want once", room.without)
	}
}
