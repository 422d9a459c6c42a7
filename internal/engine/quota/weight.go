package quota

import "k8s.io/apimachinery/pkg/api/resource"

// Weight is how much of what is shared a node may take beside its siblings, in
// billionths: of twice the weight it may take twice as much. Nothing in this package
// depends on it.
type Weight int64

// One is the weight of a node that was given none.
const One Weight = 1_000_000_000

// WeightOf turns a quantity into a weight. What is beyond the range saturates, what is
// negative is 0.
func WeightOf(q resource.Quantity) Weight { return Weight(max(0, scaled(q, resource.Nano))) }

// WeighQueue gives a ClusterQueue a weight, nil for One.
func (t *Tree) WeighQueue(name string, w *Weight) { t.leaf(name).weight = w }

// WeighCohort gives a cohort a weight, nil for One.
func (t *Tree) WeighCohort(name string, w *Weight) { t.cohort(name).weight = w }

// Weight is what the node was given, One if nothing.
func (n *Node) Weight() Weight {
	if n.weight == nil {
		return One
	}
	return *n.weight
}

// Resources are the indices of the node's tree, those of one resource together. Not to
// be changed.
func (n *Node) Resources() [][]Index { return n.tree.resources }
