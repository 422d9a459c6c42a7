package quota

// Limits is the quota of one node for one flavor's resource.
type Limits struct {
	// Nominal is the node's own amount.
	Nominal int64
	// Borrowing bounds what the node may use beyond the quota of its subtree; Unlimited if not set.
	Borrowing int64
	// Lending bounds what others may use of the subtree's quota; Unlimited if not set.
	Lending int64
	// Unnamed marks a ClusterQueue's resource of which its owner has not said how much the queue deserves. What the
	// queue uses of it is borrowed from the cohort, and does not count when the queue reclaims other resources.
	Unnamed bool `json:",omitempty"`
}

// Quotas are the limits of a node. Resources that are absent have no quota and no borrowing limit.
type Quotas map[FlavorResource]Limits

// Ledger is one of the two accounts of usage: held is what workloads have, planned what they will have once all
// decisions have taken effect.
type Ledger int

const (
	// Held is what workloads hold now.
	Held Ledger = iota
	// Planned is what they will hold once evicted workloads have released their quota, and those that wait for it
	// have what is nominated for them.
	Planned

	ledgers = 2
)

// Tree is all ClusterQueues and cohorts. A cohort that others refer to exists implicitly, without quota. The zero value
// is empty and ready to use.
//
// Changes of the structure are cheap: derived values are recomputed once, at the next query.
type Tree struct {
	queues  map[string]*Node
	cohorts map[string]*Node
	stale   bool

	names   []FlavorResource
	indices map[FlavorResource]Index
	// resources has the indices of each resource, byResource the position there of each resource.
	resources  [][]Index
	byResource map[string]int

	// journal has the usage before each tentative change, oldest first.
	journal    []before
	journaling bool
}

// before is a former sum of a node.
type before struct {
	node   *Node
	ledger Ledger
	index  Index
	usage  Sum
}

// Index returns the index of a FlavorResource, which is stable for the lifetime of the tree.
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

// Name reverses Index.
func (t *Tree) Name(i Index) FlavorResource { return t.names[i] }

// SetQueue sets the quotas of a ClusterQueue and its cohort ("" for none). What is charged to it stays.
func (t *Tree) SetQueue(name, cohort string, quotas Quotas) {
	n := t.leaf(name)
	n.parentName, n.quotas, n.declared = cohort, quotas, true
	t.stale = true
}

// DeleteQueue removes the quotas of a ClusterQueue. What is still charged to it is kept in case it is created again,
// but no longer counts in the cohort.
func (t *Tree) DeleteQueue(name string) {
	if n := t.queues[name]; n != nil {
		n.parentName, n.quotas, n.weight, n.declared = "", nil, nil, false
		t.stale = true
	}
}

// SetCohort sets the quotas of a cohort and its parent ("" for none).
func (t *Tree) SetCohort(name, parent string, quotas Quotas) {
	n := t.cohort(name)
	n.parentName, n.quotas, n.declared = parent, quotas, true
	t.stale = true
}

// DeleteCohort removes the quotas and the parent of a cohort. It continues to exist while its members refer to it.
func (t *Tree) DeleteCohort(name string) {
	n := t.cohort(name)
	n.parentName, n.quotas, n.weight, n.declared = "", nil, nil, false
	t.stale = true
}

// Charge adds the amounts to the usage of a ClusterQueue, whether or not they are within its quota. The queue need
// not exist yet: workloads may be observed before it.
func (t *Tree) Charge(queue string, l Ledger, v Vector) { t.charge(queue, l, v, 1) }

// Release reverses Charge.
func (t *Tree) Release(queue string, l Ledger, v Vector) { t.charge(queue, l, v, -1) }

func (t *Tree) charge(queue string, l Ledger, v Vector, sign int64) {
	if len(v) > 0 { // create no queue for nothing
		t.leaf(queue).charge(l, v, sign)
	}
}

// Try calls what, which may charge and release anything but must not change the structure of the tree, and rolls its
// changes back. Calls may be nested.
func (t *Tree) Try(what func()) {
	t.sync()
	began, journaling := len(t.journal), t.journaling
	t.journaling = true
	what()
	for i := len(t.journal) - 1; i >= began; i-- {
		was := t.journal[i]
		was.node.usage[was.ledger][was.index] = was.usage
		was.node.version++
	}
	t.journal, t.journaling = t.journal[:began], journaling
}

// Queue returns the node of a ClusterQueue, nil if it does not exist. The node stays the same while the queue exists.
func (t *Tree) Queue(name string) *Node {
	t.sync()
	if n := t.queues[name]; n != nil && n.declared {
		return n
	}
	return nil
}

// Cohort returns the node of a cohort, nil if it does not exist. The node stays the same while the cohort exists or
// is referred to.
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

// sync recomputes links, subtree quotas and usage of the whole tree if anything has changed.
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
		n.version++
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

// dropEmptyQueues removes deleted queues that nothing is charged to.
func (t *Tree) dropEmptyQueues() {
	for name, n := range t.queues {
		if !n.declared && !n.isCharged() {
			delete(t.queues, name)
		}
	}
}

// dropUnnamedCohorts creates the cohorts that others refer to, and removes those that were deleted and that none
// refers to.
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
