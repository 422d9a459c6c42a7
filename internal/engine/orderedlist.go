package engine

// orderedList lists workloads in the order in which they were added. A workload is in at most one list of a kind: its
// listEntry says in which one, and where. Adding and removing take constant time on average.
type orderedList struct {
	// list has a nil in place of each removed workload; removed counts these. All before index head are nil.
	list          []*listEntry
	removed, head int
}

// listEntry is the entry of a workload in lists of one kind.
type listEntry struct {
	w  *workload
	on *orderedList
	at int
}

func (o *orderedList) len() int { return len(o.list) - o.removed }

func (o *orderedList) add(s *listEntry) {
	s.on, s.at = o, len(o.list)
	o.list = append(o.list, s)
}

// remove removes the workload from its list, if it is in one.
func (l *listEntry) remove() {
	r := l.on
	if r == nil {
		return
	}
	l.on = nil
	r.list[l.at] = nil
	if r.removed++; r.removed > len(r.list)/2 {
		r.compact()
	}
}

// compact removes the nil entries.
func (o *orderedList) compact() {
	before := o.list
	o.list, o.removed, o.head = before[:0], 0, 0
	for _, s := range before {
		if s != nil {
			o.add(s)
		}
	}
	clear(before[len(o.list):])
}

// first returns the workload that was added first, nil if the list is empty.
func (o *orderedList) first() *workload {
	for ; o.head < len(o.list); o.head++ {
		if s := o.list[o.head]; s != nil {
			return s.w
		}
	}
	return nil
}

// moveTo moves all workloads to the end of another list.
func (o *orderedList) moveTo(other *orderedList) {
	for _, s := range o.list {
		if s != nil {
			other.add(s)
		}
	}
	*o = orderedList{}
}

// moveAll moves all workloads of the settled list to the end of the unsettled one.
func moveAll(settled, unsettled **orderedList) {
	if (*unsettled).len() == 0 {
		*settled, *unsettled = *unsettled, *settled
	} else {
		(*settled).moveTo(*unsettled)
	}
}
