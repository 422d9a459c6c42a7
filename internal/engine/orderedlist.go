package engine

// orderedList lists workloads in the order in which they were added, each at most in one list of a
// kind: the spot says in which, and where. To add one and to strike one off takes the same
// short time however many there are.
type orderedList struct {
	// list has a nil in the place of everyone who was struck off; struck counts them. All
	// before the place begin were.
	list          []*spot
	struck, begin int
}

// spot is the place of a workload on lists of one kind.
type spot struct {
	w  *workload
	on *orderedList
	at int
}

func (r *orderedList) len() int { return len(r.list) - r.struck }

func (r *orderedList) add(s *spot) {
	s.on, s.at = r, len(r.list)
	r.list = append(r.list, s)
}

// strike takes the workload off the list that it is on, if it is on one.
func (s *spot) strike() {
	r := s.on
	if r == nil {
		return
	}
	s.on = nil
	r.list[s.at] = nil
	if r.struck++; r.struck > len(r.list)/2 {
		r.close()
	}
}

// close drops the places of those who were struck off.
func (r *orderedList) close() {
	before := r.list
	r.list, r.struck, r.begin = before[:0], 0, 0
	for _, s := range before {
		if s != nil {
			r.add(s)
		}
	}
	clear(before[len(r.list):])
}

// first is who was added before all others, nil if there is nobody.
func (r *orderedList) first() *workload {
	for ; r.begin < len(r.list); r.begin++ {
		if s := r.list[r.begin]; s != nil {
			return s.w
		}
	}
	return nil
}

// moveTo adds everyone to another list.
func (r *orderedList) moveTo(other *orderedList) {
	for _, s := range r.list {
		if s != nil {
			other.add(s)
		}
	}
	*r = orderedList{}
}

// unsettle has everyone on the settled list be on the unsettled one, behind those who are.
func unsettle(settled, unsettled **orderedList) {
	if (*unsettled).len() == 0 {
		*settled, *unsettled = *unsettled, *settled
	} else {
		(*settled).moveTo(*unsettled)
	}
}
