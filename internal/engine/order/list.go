package order

// List lists members in the order in which they were added. A member is in at most one list of a kind: its Entry says
// in which one, and where. Adding and removing take constant time on average. The zero value is empty and ready to use.
type List[T any] struct {
	// list has a nil in place of each removed member; removed counts these. All before index head are nil.
	list          []*Entry[T]
	removed, head int
}

// Entry is the entry of a member in lists of one kind.
type Entry[T any] struct {
	// Of is the member.
	Of T
	on *List[T]
	at int
}

// On returns the list that the member is in, nil for none.
func (e *Entry[T]) On() *List[T] { return e.on }

// Len returns the number of members.
func (l *List[T]) Len() int { return len(l.list) - l.removed }

// Add adds a member, which is in no list of the kind.
func (l *List[T]) Add(e *Entry[T]) {
	e.on, e.at = l, len(l.list)
	l.list = append(l.list, e)
}

// Remove removes the member from its list, if it is in one.
func (e *Entry[T]) Remove() {
	l := e.on
	if l == nil {
		return
	}
	e.on = nil
	l.list[e.at] = nil
	if l.removed++; l.removed > len(l.list)/2 {
		l.compact()
	}
}

// compact removes the nil entries.
func (l *List[T]) compact() {
	before := l.list
	l.list, l.removed, l.head = before[:0], 0, 0
	for _, e := range before {
		if e != nil {
			l.Add(e)
		}
	}
	clear(before[len(l.list):])
}

// First returns the member that was added first, the zero value if the list is empty.
func (l *List[T]) First() (first T) {
	for ; l.head < len(l.list); l.head++ {
		if e := l.list[l.head]; e != nil {
			return e.Of
		}
	}
	return first
}

// moveTo moves all members to the end of another list.
func (l *List[T]) moveTo(other *List[T]) {
	for _, e := range l.list {
		if e != nil {
			other.Add(e)
		}
	}
	*l = List[T]{}
}

// MoveAll moves all members of the settled list to the end of the unsettled one. Where that is empty, the lists are
// swapped.
func MoveAll[T any](settled, unsettled **List[T]) {
	if (*unsettled).Len() == 0 {
		*settled, *unsettled = *unsettled, *settled
	} else {
		(*settled).moveTo(*unsettled)
	}
}
