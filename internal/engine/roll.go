package engine

// roll lists workloads in the order in which they were added, each at most in one roll.
// To add one and to strike one off takes the same short time however many there are.
type roll struct {
	// list has a nil in the place of everyone who was struck off; struck counts them. All
	// before the place begin were.
	list          []*workload
	struck, begin int
}

func (r *roll) len() int { return len(r.list) - r.struck }

func (r *roll) add(w *workload) {
	w.onRoll, w.rollAt = r, len(r.list)
	r.list = append(r.list, w)
}

// strike takes the workload off the roll that it is on, if it is on one.
func (w *workload) strike() {
	r := w.onRoll
	if r == nil {
		return
	}
	w.onRoll = nil
	r.list[w.rollAt] = nil
	if r.struck++; r.struck > len(r.list)/2 {
		r.close()
	}
}

// close drops the places of those who were struck off.
func (r *roll) close() {
	before := r.list
	r.list, r.struck, r.begin = before[:0], 0, 0
	for _, w := range before {
		if w != nil {
			r.add(w)
		}
	}
	clear(before[len(r.list):])
}

// first is who was added before all others, nil if there is nobody.
func (r *roll) first() *workload {
	for ; r.begin < len(r.list); r.begin++ {
		if w := r.list[r.begin]; w != nil {
			return w
		}
	}
	return nil
}

// moveTo adds everyone to another roll.
func (r *roll) moveTo(other *roll) {
	for _, w := range r.list {
		if w != nil {
			other.add(w)
		}
	}
	*r = roll{}
}
