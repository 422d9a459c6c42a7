package growth

import (
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// YieldTrial is a search for sizes of the resizable workloads of a queue. In thousands of them, most have the same size
// in one step of the search as in the last, and stay as they are on the nodes.
type YieldTrial struct {
	growths *Growths
	q       *state.ClusterQueue
	t       *state.Resizable
	// sizes are the sizes that are tried, OnNodes those that the nodes have.
	sizes, onNodes []int32
	// Tried counts the changes on nodes.
	Tried int
}

// TryYields runs a search, and then undoes what it did.
func (g *Growths) TryYields(q *state.ClusterQueue, t *state.Resizable, search func(*YieldTrial)) {
	trial := &YieldTrial{growths: g, q: q, t: t, onNodes: t.Sizes()}
	if len(g.nodes.Topologies) == 0 {
		search(trial)
		return
	}
	g.nodes.Places.Try(func() { search(trial) })
}

// Release runs f as if the workloads had these sizes, and the quota of the other pods were free.
func (y *YieldTrial) Release(sizes []int32, f func()) {
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
	y.q.Node.Release(quota.Planned, released)
	y.growths.nodes.Departing++
	defer func() {
		y.growths.nodes.Departing--
		y.q.Node.Charge(quota.Planned, released)
	}()
	f()
}

// TakeOffNodes makes the nodes have the sizes that are tried.
func (y *YieldTrial) TakeOffNodes() {
	if len(y.growths.nodes.Topologies) == 0 {
		return
	}
	for i, w := range y.t.Members {
		to := y.sizes[i]
		if to == y.onNodes[i] || !w.Held.OnNodes() && y.growths.nodes.PodCounts[w.Key] == 0 {
			continue
		}
		y.onNodes[i] = to
		y.Tried++
		switch to {
		case y.t.Jobs[i].Size:
			y.growths.nodes.HoldAs(w, w.Placed)
		case 0:
			y.growths.nodes.HoldAs(w, state.Placed{By: w.Held, Leaving: true})
		default:
			y.growths.nodes.HoldAs(w, state.Placed{By: w.Held.Sized(y.t.At[i], to, nil)})
		}
	}
}
