package waiting

// In a strict queue no workload passes a head that does not fit: all wait behind it.

// Head returns the blocked head of a strict queue, nil if there is none.
func (q *Queue) Head() *Class { return q.head }

// HoldAll makes the class, which was just blocked, the head of a strict queue: no other class is evaluated.
func (q *Queue) HoldAll(head *Class) { q.head = head }
