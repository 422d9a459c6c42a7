package quota

import "k8s.io/apimachinery/pkg/api/resource"

// Weight is the fair-sharing weight of a node among its siblings, in billionths: a node of twice the weight may take
// twice as much. Nothing in this package depends on it.
type Weight int64

// One is the default weight.
const One Weight = 1_000_000_000

// WeightOf converts a quantity to a weight. Values out of range saturate, negative ones are 0.
func WeightOf(q resource.Quantity) Weight { return Weight(max(0, scaled(q, resource.Nano))) }

// SetQueueWeight sets the weight of a ClusterQueue, nil for One.
func (t *Tree) SetQueueWeight(name string, w *Weight) { t.leaf(name).setWeight(w) }

// SetCohortWeight sets the weight of a cohort, nil for One.
func (t *Tree) SetCohortWeight(name string, w *Weight) { t.cohort(name).setWeight(w) }

func (n *Node) setWeight(w *Weight) {
	n.weight = w
	n.version++
}

// Weight returns the node's weight, One by default.
func (n *Node) Weight() Weight {
	if n.weight == nil {
		return One
	}
	return *n.weight
}

// Resources returns the indices of the node's tree, grouped by resource. It must not be modified.
func (n *Node) Resources() [][]Index { return n.tree.resources }
