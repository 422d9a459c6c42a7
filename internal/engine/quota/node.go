package quota

import (
	"cmp"
	"slices"
	"strings"
)

// Node is a ClusterQueue (a leaf) or a cohort of a Tree, from Tree.Queue or Tree.Cohort. What it returns is valid
// until the tree is changed.
type Node struct {
	tree       *Tree
	name       string
	leaf       bool
	parentName string
	declared   bool // has an object of its own
	quotas     Quotas
	weight     *Weight        // nil for One
	charged    [ledgers][]Sum // leaves only: what workloads hold, by Index
	version    int            // as Version returns it

	// Derived by sync.
	parent   *Node
	children []*Node
	cyclic   bool
	height   int
	limits   []Limits       // by Index
	subtree  []int64        // own quota and what the children lend, by Index
	capacity []int64        // what could be taken with nothing in use, by Index
	usage    [ledgers][]Sum // what is held here or lent to below, by Index
}

// Name returns the name of the ClusterQueue or cohort.
func (n *Node) Name() string { return n.name }

// IsQueue reports whether the node is a ClusterQueue.
func (n *Node) IsQueue() bool { return n.leaf }

// Parent returns the cohort above, nil for a root.
func (n *Node) Parent() *Node { return n.parent }

// Path returns the path from the root cohort to the node, as in /lab/team/queue.
func (n *Node) Path() string {
	if n == nil {
		return "/"
	}
	names := []string{}
	for ; n != nil; n = n.parent {
		names = append(names, n.name)
	}
	slices.Reverse(names)
	return "/" + strings.Join(names, "/")
}

// Children returns the cohorts and ClusterQueues below, sorted by name. It must not be modified.
func (n *Node) Children() []*Node { return n.children }

// Cyclic reports whether the cohorts above form a cycle; the node then has no quota.
func (n *Node) Cyclic() bool { return n.cyclic }

// Height returns 0 for a ClusterQueue, and one more than the highest child for a cohort.
func (n *Node) Height() int { return n.height }

// Root returns the top of the tree. Nodes with different roots cannot affect each other. The node must not be cyclic.
func (n *Node) Root() *Node {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

// Version changes whenever the node's weight, quota or usage may have changed, or the capacity of its parent.
func (n *Node) Version() int { return n.version }

// Quota returns the node's own quota plus what the nodes below lend to it.
func (n *Node) Quota(i Index) int64 { return at(n.subtree, i) }

// Nominal returns the node's own quota.
func (n *Node) Nominal(i Index) int64 { return n.limit(i).Nominal }

// Used returns what is held at the node or lent to the nodes below.
func (n *Node) Used(l Ledger, i Index) int64 { return at(n.usage[l], i).Value() }

// Over returns by how much the node's usage, with more added, exceeds its quota, which is what it borrows. It is
// never negative.
func (n *Node) Over(l Ledger, i Index, more int64) int64 {
	return max(0, Sub(Add(n.Used(l, i), more), n.Quota(i)))
}

// Names reports whether the owner of the node has said how much it deserves of the resource, if only nothing.
func (n *Node) Names(i Index) bool { return !n.limit(i).Unnamed }

// NamesAny reports whether the owner of the node has said how much it deserves of any resource that is in the vector.
func (n *Node) NamesAny(v Vector) bool {
	return slices.ContainsFunc(v, func(a Amount) bool { return a.Value > 0 && n.Names(a.Index) })
}

// Borrows returns the height of the lowest node, from this one upward, whose quota suffices for its usage with more
// added. It is 0 for a queue, which then borrows nothing.
func (n *Node) Borrows(l Ledger, i Index, more int64) int {
	for n.Over(l, i, more) > 0 && n.parent != nil {
		more = n.Passed(l, i, more)
		n = n.parent
	}
	return n.height
}

// Passed returns the part of additional usage of a node that its parent has to lend.
func (n *Node) Passed(l Ledger, i Index, more int64) int64 {
	local := n.local(i)
	used := n.Used(l, i)
	return max(0, Sub(Add(used, more), local)) - max(0, Sub(used, local))
}

// Capacity returns how much could be taken if nothing were in use.
func (n *Node) Capacity(i Index) int64 {
	if n.cyclic {
		return 0
	}
	return at(n.capacity, i)
}

// Available returns how much more can be taken, borrowing included. It is negative if quota was cut below usage.
func (n *Node) Available(l Ledger, i Index) int64 {
	if n.cyclic {
		return 0
	}
	usage := n.Used(l, i)
	if n.parent == nil {
		return Sub(n.Quota(i), usage)
	}
	return n.offer(i, usage, n.parent.Available(l, i))
}

// Free returns how much can be taken now without taking what is nominated for others.
func (n *Node) Free(i Index) int64 { return min(n.Available(Held, i), n.Available(Planned, i)) }

// offer returns what is available at n, given its usage and what is available at its parent: the unused quota that it
// does not lend, plus what the parent can give within the borrowing limit.
func (n *Node) offer(i Index, usage, fromParent int64) int64 {
	local := n.local(i)
	if borrowing := n.limit(i).Borrowing; borrowing != Unlimited {
		shared := Sub(n.Quota(i), local)
		beyond := max(0, Sub(usage, local))
		fromParent = min(fromParent, Add(Sub(shared, beyond), borrowing))
	}
	return Add(max(0, Sub(local, usage)), fromParent)
}

// local returns the part of the node's quota that is not lent.
func (n *Node) local(i Index) int64 { return max(0, Sub(n.Quota(i), n.limit(i).Lending)) }

// unset are the limits of resources without quota.
var unset = Limits{Borrowing: Unlimited, Lending: Unlimited}

func (n *Node) limit(i Index) Limits {
	if int(i) < len(n.limits) {
		return n.limits[i]
	}
	return unset
}

// Charge adds the amounts to the usage of the ClusterQueue, as Tree.Charge does.
func (n *Node) Charge(l Ledger, v Vector) { n.charge(l, v, 1) }

// Release reverses Charge.
func (n *Node) Release(l Ledger, v Vector) { n.charge(l, v, -1) }

// charge adds the vector, times sign, to a leaf.
func (n *Node) charge(l Ledger, v Vector, sign int64) {
	for _, a := range v {
		amount := SumOf(sign * a.Value)
		if !n.tree.journaling {
			grow(&n.charged[l], a.Index).Add(amount)
		}
		if !n.tree.stale {
			n.use(l, a.Index, amount)
		}
	}
}

// recharge recomputes the usage of the leaf and its part of the usage above.
func (n *Node) recharge() {
	for l := range Ledger(ledgers) {
		for i, s := range n.charged[l] {
			if s != (Sum{}) {
				n.use(l, Index(i), s) // not s.Value(), which may be clamped
			}
		}
	}
}

// use adds to the node's usage, and passes the part that its local quota does not cover on to its parent. Releasing
// is the same with a negative amount: it reduces the usage above the local quota first.
func (n *Node) use(l Ledger, i Index, amount Sum) {
	for n != nil {
		s := grow(&n.usage[l], i)
		if n.tree.journaling {
			n.tree.journal = append(n.tree.journal, before{n, l, i, *s})
		}
		local := n.local(i)
		lent := max(0, Sub(s.Value(), local))
		s.Add(amount)
		n.version++
		passed := max(0, Sub(s.Value(), local)) - lent
		if n.cyclic || passed == 0 {
			return
		}
		n, amount = n.parent, SumOf(passed)
	}
}

// Charges returns what is charged to the queue, without zeros.
func (n *Node) Charges(l Ledger) Vector {
	var v Vector
	for i, s := range n.charged[l] {
		if amount := s.Value(); amount != 0 {
			v = append(v, Amount{Index(i), amount})
		}
	}
	return v
}

// isCharged reports whether anything is charged to the queue.
func (n *Node) isCharged() bool {
	return slices.ContainsFunc(n.charged[:], func(sums []Sum) bool {
		return slices.ContainsFunc(sums, func(s Sum) bool { return s != (Sum{}) })
	})
}

// loops reports whether the path upward from n is longer than the number of cohorts.
func (n *Node) loops(cohorts int) bool {
	for range cohorts + 1 {
		if n.parent == nil {
			return false
		}
		n = n.parent
	}
	return true
}

func (n *Node) sortChildren() { slices.SortFunc(n.children, CompareSiblings) }

// CompareSiblings compares two children of a cohort by their order there.
func CompareSiblings(a, b *Node) int {
	if a.name == b.name && a.leaf != b.leaf {
		if a.leaf {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.name, b.name)
}

// sum computes quotas bottom-up and capacities top-down, and clears usage.
func (n *Node) sum() {
	n.sumQuotas()
	n.sumCapacities()
}

func (n *Node) sumQuotas() {
	n.usage = [ledgers][]Sum{}
	n.height = 0
	n.limits, n.subtree = nil, nil
	for fr, l := range n.quotas {
		i := n.tree.Index(fr)
		for len(n.limits) <= int(i) {
			n.limits = append(n.limits, unset)
		}
		n.limits[i] = l
		*grow(&n.subtree, i) = l.Nominal
	}
	if n.cyclic {
		return
	}
	for _, c := range n.children {
		c.sumQuotas()
		n.height = max(n.height, c.height+1)
		for i, amount := range c.subtree {
			s := grow(&n.subtree, Index(i))
			*s = Add(*s, min(amount, c.limit(Index(i)).Lending))
		}
	}
}

func (n *Node) sumCapacities() {
	n.capacity = nil
	for i := range Index(len(n.tree.names)) {
		capacity := n.Quota(i)
		if n.parent != nil && !n.cyclic {
			capacity = n.offer(i, 0, n.parent.Capacity(i))
		}
		*grow(&n.capacity, i) = capacity
	}
	if n.cyclic {
		return
	}
	for _, c := range n.children {
		c.sumCapacities()
	}
}

// at returns the i-th element, or the zero value if the list is shorter.
func at[T any](list []T, i Index) T {
	if int(i) < len(list) {
		return list[i]
	}
	var none T
	return none
}

// grow returns a pointer to the i-th element, extending the list as needed.
func grow[T any](list *[]T, i Index) *T {
	for len(*list) <= int(i) {
		var none T
		*list = append(*list, none)
	}
	return &(*list)[i]
}
