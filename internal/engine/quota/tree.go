package quota

import "maps"

// FlavorResource names what quota is counted in: a resource of a flavor.
type FlavorResource struct {
	Flavor   string
	Resource string
}

// Limits is the quota of one node for one flavor's resource.
type Limits struct {
	// Nominal is the node's own amount.
	Nominal int64
	// Borrowing bounds what the node may use beyond its subtree's own quota.
	// Unlimited where none is set.
	Borrowing int64
	// Lending bounds what others may use of the subtree's quota. Unlimited where
	// none is set.
	Lending int64
}

// Quotas are the limits of a node. What is absent has no quota of its own and
// may be borrowed without limit.
type Quotas map[FlavorResource]Limits

// Tree holds every ClusterQueue and cohort. A cohort that is only named by others
// exists implicitly, without quota. The zero value is empty and ready.
//
// Changes of the shape are cheap: the sums over subtrees are made again once, at
// the next question asked.
type Tree struct {
	queues  map[string]*node
	cohorts map[string]*node
	stale   bool
}

type node struct {
	name       string
	parentName string
	declared   bool // a cohort that has an object of its own
	quotas     Quotas
	charged    map[FlavorResource]int64 // leaves only: what workloads hold

	// Derived by sync.
	parent   *node
	children []*node
	cyclic   bool
	subtree  map[FlavorResource]int64 // own quota and what the children lend
	usage    map[FlavorResource]int64 // what is held here or lent to below
}

// SetQueue puts a ClusterQueue under a cohort ("" for none) with its quotas. What
// is charged to it stays.
func (t *Tree) SetQueue(name, cohort string, quotas Quotas) {
	n := t.queues[name]
	if n == nil {
		n = &node{name: name, charged: map[FlavorResource]int64{}}
		if t.queues == nil {
			t.queues = map[string]*node{}
		}
		t.queues[name] = n
	}
	n.parentName, n.quotas, n.declared = cohort, quotas, true
	t.stale = true
}

// DeleteQueue forgets the quotas of a ClusterQueue. What is still charged to it is
// kept in case it comes back, but no longer weighs on the cohort.
func (t *Tree) DeleteQueue(name string) {
	if n := t.queues[name]; n != nil {
		n.parentName, n.quotas, n.declared = "", nil, false
		t.stale = true
	}
}

// SetCohort puts a cohort under its parent ("" for none) with quotas of its own.
func (t *Tree) SetCohort(name, parent string, quotas Quotas) {
	n := t.cohort(name)
	n.parentName, n.quotas, n.declared = parent, quotas, true
	t.stale = true
}

// DeleteCohort takes a cohort's quotas and parent away. Its members stay together
// for as long as they name it.
func (t *Tree) DeleteCohort(name string) {
	n := t.cohort(name)
	n.parentName, n.quotas, n.declared = "", nil, false
	t.stale = true
}

// Add charges amount (which may be negative, to release) to a ClusterQueue, be it
// within its quota or not.
func (t *Tree) Add(queue string, fr FlavorResource, amount int64) {
	n := t.queues[queue]
	if n == nil {
		// Workloads may be seen before their queue is: hold the charge for it.
		t.SetQueue(queue, "", nil)
		n = t.queues[queue]
		n.declared = false
	}
	n.charged[fr] = Add(n.charged[fr], amount)
	if !t.stale {
		n.addUsage(fr, amount)
	}
}

// Available is how much more of fr the queue may take now, its own and borrowed.
// It is negative where quota was cut below use.
func (t *Tree) Available(queue string, fr FlavorResource) int64 {
	if n := t.synced(queue); n != nil {
		return n.available(fr, true)
	}
	return 0
}

// Capacity is how much of fr the queue could take if nobody used anything.
func (t *Tree) Capacity(queue string, fr FlavorResource) int64 {
	if n := t.synced(queue); n != nil {
		return n.available(fr, false)
	}
	return 0
}

// Used is what is charged to the queue, and borrowed the part of it beyond its
// nominal quota, where there is a cohort to borrow it from.
func (t *Tree) Used(queue string, fr FlavorResource) (used, borrowed int64) {
	n := t.synced(queue)
	if n == nil {
		return 0, 0
	}
	used = n.charged[fr]
	if n.parent == nil {
		return used, 0
	}
	return used, max(0, Sub(used, n.quotas[fr].Nominal))
}

// Root names the top of the tree that the queue belongs to: queues with different
// roots cannot affect each other. ok is false where the queue is unknown or its
// cohorts form a cycle.
func (t *Tree) Root(queue string) (root string, ok bool) {
	n := t.synced(queue)
	if n == nil || !n.declared || n.cyclic {
		return "", false
	}
	for n.parent != nil {
		n = n.parent
	}
	if n == t.queues[queue] {
		return "queue/" + n.name, true
	}
	return "cohort/" + n.name, true
}

// Cyclic reports whether the cohorts above the queue form a cycle: its members
// have no quota then, and their workloads wait.
func (t *Tree) Cyclic(queue string) bool {
	n := t.synced(queue)
	return n != nil && n.cyclic
}

func (t *Tree) cohort(name string) *node {
	if n := t.cohorts[name]; n != nil {
		return n
	}
	if t.cohorts == nil {
		t.cohorts = map[string]*node{}
	}
	n := &node{name: name}
	t.cohorts[name] = n
	return n
}

func (t *Tree) synced(queue string) *node {
	if t.stale {
		t.sync()
	}
	return t.queues[queue]
}

// sync derives links, subtree quotas and usage of the whole tree from what was
// set.
func (t *Tree) sync() {
	t.stale = false
	named := map[string]bool{}
	for _, n := range t.queues {
		named[n.parentName] = true
	}
	for _, n := range t.cohorts {
		named[n.parentName] = true
	}
	for name := range named {
		if name != "" {
			t.cohort(name)
		}
	}
	for name, n := range t.cohorts {
		if !n.declared && !named[name] {
			delete(t.cohorts, name)
			continue
		}
		n.children, n.parent, n.cyclic = nil, nil, false
	}
	for _, n := range t.cohorts {
		t.link(n)
	}
	for _, n := range t.queues {
		n.parent, n.cyclic = nil, false
		t.link(n)
	}
	for _, n := range t.cohorts {
		n.cyclic = n.loops(len(t.cohorts))
	}
	for _, n := range t.queues {
		n.cyclic = n.loops(len(t.cohorts))
	}
	for _, n := range t.cohorts {
		if n.parent == nil && !n.cyclic {
			n.sum()
		}
	}
	for _, n := range t.queues {
		if n.parent == nil || n.cyclic {
			n.sum()
		}
	}
	for _, n := range t.queues {
		n.usage = map[FlavorResource]int64{}
		for fr, amount := range n.charged {
			n.addUsage(fr, amount)
		}
	}
}

func (t *Tree) link(n *node) {
	if n.parentName == "" {
		return
	}
	n.parent = t.cohorts[n.parentName]
	n.parent.children = append(n.parent.children, n)
}

// loops reports whether walking up from n does not end within the number of
// cohorts there are.
func (n *node) loops(cohorts int) bool {
	for range cohorts + 1 {
		if n.parent == nil {
			return false
		}
		n = n.parent
	}
	return true
}

// sum computes subtree quotas bottom up and clears usage.
func (n *node) sum() {
	n.subtree = map[FlavorResource]int64{}
	n.usage = map[FlavorResource]int64{}
	for fr, l := range n.quotas {
		n.subtree[fr] = l.Nominal
	}
	for _, c := range n.children {
		c.sum()
		for fr, amount := range c.subtree {
			n.subtree[fr] = Add(n.subtree[fr], min(amount, c.limits(fr).Lending))
		}
	}
}

func (n *node) limits(fr FlavorResource) Limits {
	if l, ok := n.quotas[fr]; ok {
		return l
	}
	return Limits{Borrowing: Unlimited, Lending: Unlimited}
}

// local is the part of the subtree's quota that is not lent to others.
func (n *node) local(fr FlavorResource) int64 {
	return max(0, Sub(n.subtree[fr], n.limits(fr).Lending))
}

// addUsage charges n and lets the part that n's local quota does not cover bubble
// up. Releasing is the same with a negative amount: the usage above the local
// quota shrinks first.
func (n *node) addUsage(fr FlavorResource, amount int64) {
	before := max(0, Sub(n.usage[fr], n.local(fr)))
	n.usage[fr] = Add(n.usage[fr], amount)
	after := max(0, Sub(n.usage[fr], n.local(fr)))
	if n.parent != nil && !n.cyclic && after != before {
		n.parent.addUsage(fr, after-before)
	}
}

// available is what n may still take (inUse), or could with nothing in use: its
// unlent rest, and what the parent can give within the borrowing limit.
func (n *node) available(fr FlavorResource, inUse bool) int64 {
	if n.cyclic {
		return 0
	}
	var usage int64
	if inUse {
		usage = n.usage[fr]
	}
	if n.parent == nil {
		return Sub(n.subtree[fr], usage)
	}
	local := n.local(fr)
	fromParent := n.parent.available(fr, inUse)
	if borrowing := n.limits(fr).Borrowing; borrowing != Unlimited {
		shared := Sub(n.subtree[fr], local)
		beyond := max(0, Sub(usage, local))
		fromParent = min(fromParent, Add(Sub(shared, beyond), borrowing))
	}
	return Add(max(0, Sub(local, usage)), fromParent)
}

// Charges lists what is charged to the queue, zero amounts left out.
func (t *Tree) Charges(queue string) map[FlavorResource]int64 {
	out := map[FlavorResource]int64{}
	if n := t.queues[queue]; n != nil {
		maps.Copy(out, n.charged)
		maps.DeleteFunc(out, func(_ FlavorResource, v int64) bool { return v == 0 })
	}
	return out
}
