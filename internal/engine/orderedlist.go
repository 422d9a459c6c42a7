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

func (r *orderedList) len() int { return len(r.list) - r.removed }

func (r *orderedList) add(s *listEntry) {
	s.on, s.at = r, len(r.list)
	r.list = append(r.list, s)
}

// remove removes the workload from its list, if it is in one.
func (s *listEntry) remove() {
	r := s.on
	if r == nil {
		return
	}
	s.on = nil
	r.list[s.at] = nil
	if r.removed++; r.removed > len(r.list)/2 {
		r.compact()
	}
}

// compact removes the nil entries.
func (r *orderedList) compact() {
	before := r.list
	r.list, r.removed, r.head = before[:0], 0, 0
	for _, s := range before {
		if s != nil {
			r.add(s)
		}
	}
	clear(before[len(r.list):])
}

// first returns the workload that was added first, nil if the list is empty.
func (r *orderedList) first() *workload {
	for ; r.head < len(r.list); r.head++ {
		if s := r.list[r.head]; s != nil {
			return s.w
		}
	}
	return nil
}

// moveTo moves all workloads to the end of another list.
func (r *orderedList) moveTo(other *orderedList) {
	for _, s := range r.list {
		if s != nil {
			other.add(s)
		}
	}
	*r = orderedList{}
}

// moveAll moves all workloads of the settled list to the end of the unsettled one.
func moveAll(settled, unsettled **orderedList) {
	if (*unsettled).len() == 0 {
		*settled, *unsettled = *unsettled, *settled
	} else {
		(*settled).moveTo(*unsettled)
	}
}
