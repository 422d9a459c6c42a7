package quota

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

// Ledger is one of the two accounts that are kept of usage.
type Ledger int

const (
	// Held is what workloads hold at this moment.
	Held Ledger = iota
	// Planned is what they will hold once those that were told to go have gone, and
	// those that wait for them have what was promised to them.
	Planned

	ledgers = 2
)

// Tree holds every ClusterQueue and cohort. A cohort that is only named by others
// exists implicitly, without quota. The zero value is empty and ready.
//
// Changes of the shape are cheap: the sums over subtrees are made again once, at
// the next question asked.
type Tree struct {
	queues  map[string]*Node
	cohorts map[string]*Node
	stale   bool

	names   []FlavorResource
	indices map[FlavorResource]Index
	// resources has the indices of each resource, byResource its place there.
	resources  [][]Index
	byResource map[string]int

	// journal has what usage was before each tentative change, oldest first.
	journal    []before
	journaling bool
}

// before is what one sum of a node was.
type before struct {
	node   *Node
	ledger Ledger
	index  Index
	usage  Sum
}

// Index is what stands for a FlavorResource in this tree, for as long as the tree
// lives.
func (t *Tree) Index(fr FlavorResource) Index {
	if i, ok := t.indices[fr]; ok {
		return i
	}
	if t.indices == nil {
		t.indices = map[FlavorResource]Index{}
		t.byResource = map[string]int{}
	}
	i := Index(len(t.names))
	t.names = append(t.names, fr)
	t.indices[fr] = i
	at, known := t.byResource[fr.Resource]
	if !known {
		at = len(t.resources)
		t.byResource[fr.Resource] = at
		t.resources = append(t.resources, nil)
	}
	t.resources[at] = append(t.resources[at], i)
	return i
}

// Name is the inverse of Index.
func (t *Tree) Name(i Index) FlavorResource { return t.names[i] }

// SetQueue puts a ClusterQueue under a cohort ("" for none) with its quotas. What
// is charged to it stays.
func (t *Tree) SetQueue(name, cohort string, quotas Quotas) {
	n := t.leaf(name)
	n.parentName, n.quotas, n.declared = cohort, quotas, true
	t.stale = true
}

// DeleteQueue forgets the quotas of a ClusterQueue. What is still charged to it is
// kept in case it comes back, but no longer weighs on the cohort.
func (t *Tree) DeleteQueue(name string) {
	if n := t.queues[name]; n != nil {
		n.parentName, n.quotas, n.weight, n.declared = "", nil, nil, false
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
	n.parentName, n.quotas, n.weight, n.declared = "", nil, nil, false
	t.stale = true
}

// Charge adds the amounts to what a ClusterQueue has given out, be it within its
// quota or not. Workloads may be seen before their queue is: the charge is held for
// it.
func (t *Tree) Charge(queue string, l Ledger, v Vector) { t.charge(queue, l, v, 1) }

// Release is the inverse of Charge.
func (t *Tree) Release(queue string, l Ledger, v Vector) { t.charge(queue, l, v, -1) }

func (t *Tree) charge(queue string, l Ledger, v Vector, sign int64) {
	if len(v) > 0 { // else no queue need come into being
		t.leaf(queue).charge(l, v, sign)
	}
}

// Try runs what with a tree in which everything may be charged and released, and
// then undoes all of that. The shape of the tree must not be changed by it. What is
// tried may try again.
func (t *Tree) Try(what func()) {
	t.sync()
	began, journaling := len(t.journal), t.journaling
	t.journaling = true
	what()
	for i := len(t.journal) - 1; i >= began; i-- {
		was := t.journal[i]
		was.node.usage[was.ledger][was.index] = was.usage
	}
	t.journal, t.journaling = t.journal[:began], journaling
}

// Queue is the node of a ClusterQueue, nil if there is none of the name. It stays
// the same for as long as the queue exists.
func (t *Tree) Queue(name string) *Node {
	t.sync()
	if n := t.queues[name]; n != nil && n.declared {
		return n
	}
	return nil
}

// Cohort is the node of a cohort, nil if there is none of the name. It stays the same
// for as long as the cohort exists or is named.
func (t *Tree) Cohort(name string) *Node {
	t.sync()
	return t.cohorts[name]
}

func (t *Tree) leaf(name string) *Node {
	n := t.queues[name]
	if n == nil {
		n = &Node{tree: t, name: name, leaf: true}
		if t.queues == nil {
			t.queues = map[string]*Node{}
		}
		t.queues[name] = n
		t.stale = true
	}
	return n
}

func (t *Tree) cohort(name string) *Node {
	if n := t.cohorts[name]; n != nil {
		return n
	}
	if t.cohorts == nil {
		t.cohorts = map[string]*Node{}
	}
	n := &Node{tree: t, name: name}
	t.cohorts[name] = n
	return n
}

// sync derives links, subtree quotas and usage of the whole tree from what was
// set, if that has changed.
func (t *Tree) sync() {
	if !t.stale {
		return
	}
	t.stale = false
	t.dropEmptyQueues()
	t.dropUnnamedCohorts()
	for _, n := range t.cohorts {
		n.children, n.parent, n.cyclic = nil, nil, false
	}
	t.each(func(n *Node) {
		n.parent, n.cyclic = nil, false
		if n.parentName != "" {
			n.parent = t.cohorts[n.parentName]
			n.parent.children = append(n.parent.children, n)
		}
	})
	t.each(func(n *Node) { n.cyclic = n.loops(len(t.cohorts)) })
	t.each(func(n *Node) {
		n.sortChildren()
		if n.parent == nil || n.cyclic && n.leaf {
			n.sum()
		}
	})
	t.each(func(n *Node) {
		if n.leaf {
			n.recharge()
		}
	})
}

// dropEmptyQueues ends queues that were deleted and that nothing is charged to.
func (t *Tree) dropEmptyQueues() {
	for name, n := range t.queues {
		if !n.declared && !n.isCharged() {
			delete(t.queues, name)
		}
	}
}

// dropUnnamedCohorts brings cohorts into being that others name, and ends those
// that nobody names nor declares.
func (t *Tree) dropUnnamedCohorts() {
	named := map[string]bool{}
	t.each(func(n *Node) { named[n.parentName] = true })
	for name := range named {
		if name != "" {
			t.cohort(name)
		}
	}
	for name, n := range t.cohorts {
		if !n.declared && !named[name] {
			delete(t.cohorts, name)
		}
	}
}

func (t *Tree) each(do func(*Node)) {
	for _, n := range t.cohorts {
		do(n)
	}
	for _, n := range t.queues {
		do(n)
	}
}
