package place

// settle updates the free amounts of a node after charges to it, and records who is affected.
func (u *Usage) settle(n *node) {
	if n.slot < 0 {
		n.portsChanged, n.portsFreed, n.portsReduced = false, false, false
		return
	}
	changed, grew, reduced := u.free.update(n)
	changed, grew, reduced = changed || n.portsChanged, grew || n.portsFreed, reduced || n.portsReduced
	n.portsChanged, n.portsFreed, n.portsReduced = false, false, false
	if !changed || !n.exists {
		return
	}
	u.changes.log.add(n.slot)
	u.changes.happened()
	if grew {
		u.changes.markFreed(n)
	}
	if reduced && u.changes.trial == 0 {
		u.changes.markReduced(n.Labels)
	}
	if u.changes.trial == 0 && len(n.host.places) > 0 &&
		(u.free.overcommitted(held, n.slot) || u.free.overcommitted(planned, n.slot) || len(n.ports) > 0) {
		u.changes.recheck(n.host)
	}
}

// charge counts a number of equal pods in a book of the node; a negative number takes them back.
func (u *Usage) charge(n *node, b book, takes vector, ports []HostPort, exclusive string, pods int32) {
	n.capacity.charge(b, takes, pods)
	if len(ports) > 0 {
		n.chargePorts(b, ports, pods)
	}
	if exclusive != "" {
		u.exclusive.charge(n, b, exclusive, pods)
	}
}

// Usage holds what is used of the nodes, by book, and what is free by ledger. It is charged in two steps: charge counts
// pods, settle updates what is free.
type Usage struct {
	nodes     *Nodes
	changes   *changes
	exclusive *ExclusiveLabels
	free      freeTable
}

// Load is what one pod uses of its node.
type Load struct {
	takes vector
	ports []HostPort
}

// BeginTrial starts a trial: until EndTrial, changes are not reported to the engine. All that is charged in a trial
// must be taken back before its end.
func (u *Usage) BeginTrial() { u.changes.begin() }

// EndTrial ends a trial.
func (u *Usage) EndTrial() { u.changes.end() }

// Charge counts a number of equal pods on the node in a slot, in all books of the ledger; a negative number takes them
// back. If exclusive is not empty, the pods have the domain of that label to themselves.
func (u *Usage) Charge(on Ledger, slot int32, each *Load, exclusive string, pods int32) {
	n := u.nodes.slots[slot]
	for _, b := range read[on] {
		u.charge(n, b, each.takes, each.ports, exclusive, pods)
	}
	u.settle(n)
}

// ChargeExclusive counts a number of pods on the node in a slot only as exclusive by a label.
func (u *Usage) ChargeExclusive(on Ledger, slot int32, by string, pods int32) {
	for _, b := range read[on] {
		u.exclusive.charge(u.nodes.slots[slot], b, by, pods)
	}
}

// Avoid keeps searches off the node in a slot until Readmit. It reports whether this is new.
func (u *Usage) Avoid(slot int32) bool {
	n := u.nodes.slots[slot]
	if n.avoided {
		return false
	}
	n.avoided = true
	u.free.update(n)
	u.changes.log.add(slot)
	return true
}

// Readmit undoes Avoid.
func (u *Usage) Readmit(slots []int32) {
	for _, slot := range slots {
		n := u.nodes.slots[slot]
		n.avoided = false
		u.free.update(n)
		u.changes.log.add(slot)
	}
}

// freeTable holds the free amounts and marks of all nodes by slot. Counts read one resource of many nodes
// in turn, so that these lie side by side in memory.
type freeTable struct {
	// free is indexed by book, resource and slot. Values beyond the end of a slice are zero.
	free  [books][][]int64
	marks []mark
}

// mark holds what else may keep pods off the node in a slot. The version is zero for an unused slot.
type mark struct {
	version                   uint64
	cordoned, avoided, ported bool
}

// of returns the free amount of a resource in a slot.
func (f *freeTable) of(b book, resource, slot int32) int64 {
	if int(resource) >= len(f.free[b]) || int(slot) >= len(f.free[b][resource]) {
		return 0
	}
	return f.free[b][resource][slot]
}

// set stores a free amount and returns the previous one.
func (f *freeTable) set(b book, resource, slot int32, free int64) (before int64) {
	if before = f.of(b, resource, slot); before == free {
		return before
	}
	for int(resource) >= len(f.free[b]) {
		f.free[b] = append(f.free[b], nil)
	}
	column := &f.free[b][resource]
	if missing := int(slot) + 1 - len(*column); missing > 0 {
		*column = append(*column, make([]int64, missing)...)
	}
	(*column)[slot] = free
	return before
}

// clear resets a slot.
func (f *freeTable) clear(slot int32) {
	for b := range f.free {
		for resource := range f.free[b] {
			f.set(book(b), int32(resource), slot, 0)
		}
	}
	f.marks[slot] = mark{}
}

// update copies the state of a node into its slot. It reports whether any amount changed, whether any
// grew, and whether any would be smaller if nothing but resident pods ran.
func (f *freeTable) update(n *node) (changed, grew, reduced bool) {
	for b := range book(books) {
		for i := range n.capacity.allocatable {
			free := n.capacity.free(b, i)
			if before := f.set(b, int32(i), n.slot, free); before != free {
				changed = true
				grew = grew || free > before // also while it stays negative: there may be some once others end
				reduced = reduced || b == resident && free < before
			}
		}
	}
	for int(n.slot) >= len(f.marks) {
		f.marks = append(f.marks, mark{})
	}
	f.marks[n.slot] = mark{n.version, n.Cordoned, n.avoided, len(n.ports) > 0}
	return changed, grew, reduced
}

// fit returns how many pods fit in a slot by resources, and the resource that limits the number: the first
// resource of the resources that limit it most, -1 if none does.
func (f *freeTable) fit(v vector, on Ledger, slot int32) (pods int64, bound int32) {
	pods, bound = cap32, -1
	for _, a := range v {
		left := f.of(read[on][0], a.resource, slot)
		for _, b := range read[on][1:] {
			left = min(left, f.of(b, a.resource, slot))
		}
		fits := int64(0)
		if left >= a.value {
			fits = left / a.value
		}
		if fits < pods {
			pods, bound = fits, a.resource
		}
	}
	return pods, bound
}

// overcommitted reports whether more of any resource is used in a slot than the node has.
func (f *freeTable) overcommitted(b book, slot int32) bool {
	for resource := range f.free[b] {
		if f.of(b, int32(resource), slot) < 0 {
			return true
		}
	}
	return false
}
