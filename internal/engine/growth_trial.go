package engine

import (
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// yieldTrial is a search for sizes of the resizable workloads of a queue. In thousands of them, most have the same size
// in one step of the search as in the last, and stay as they are on the nodes.
type yieldTrial struct {
	growths *growths
	q       *state.ClusterQueue
	t       *state.Resizable
	// sizes are the sizes that are tried, OnNodes those that the nodes have.
	sizes, onNodes []int32
	// tried counts the changes on nodes.
	tried int
}

// tryYields runs a search, and then undoes what it did.
func (g *growths) tryYields(q *state.ClusterQueue, t *state.Resizable, search func(*yieldTrial)) {
	trial := &yieldTrial{growths: g, q: q, t: t, onNodes: t.Sizes()}
	if len(g.nodes.Topologies) == 0 {
		search(trial)
		return
	}
	g.nodes.Places.Try(func() { search(trial) })
}

// release runs f as if the workloads had these sizes, and the quota of the other pods were free.
func (y *yieldTrial) release(sizes []int32, f func()) {
	y.sizes = sizes
	freed := map[quota.Index]int64{}
	for i, w := range y.t.Members {
		switch size := y.t.Jobs[i].Size; {
		case sizes[i] == size:
		case sizes[i] == 0:
			for _, a := range w.Charged.Planned {
				freed[a.Index] = quota.Add(freed[a.Index], a.Value)
			}
		default:
			for _, a := range y.t.Each[i] {
				freed[a.Index] = quota.Add(freed[a.Index], quota.Times(a.Value, size-sizes[i]))
			}
		}
	}
	released := state.VectorOfSums(freed)
	y.growths.tree.Release(y.q.Name, quota.Planned, released)
	y.growths.nodes.Departing++
	defer func() {
		y.growths.nodes.Departing--
		y.growths.tree.Charge(y.q.Name, quota.Planned, released)
	}()
	f()
}

// takeOffNodes makes the nodes have the sizes that are tried.
func (y *yieldTrial) takeOffNodes() {
	if len(y.growths.nodes.Topologies) == 0 {
		return
	}
	for i, w := range y.t.Members {
		to := y.sizes[i]
		if to == y.onNodes[i] || !w.Held.OnNodes() && y.growths.nodes.PodCounts[w.Key] == 0 {
			continue
		}
		y.onNodes[i] = to
		y.tried++
		switch to {
		case y.t.Jobs[i].Size:
			y.growths.nodes.Places.Hold(w.Key, y.growths.nodes.Holding(w, w.Placed))
		case 0:
			y.growths.nodes.Places.Hold(w.Key, y.growths.nodes.Holding(w, state.Placed{By: w.Held, Leaving: true}))
		default:
			y.growths.nodes.Places.Hold(w.Key, y.growths.nodes.Holding(w, state.Placed{By: w.Held.Sized(y.t.At[i], to, nil)}))
		}
	}
}
