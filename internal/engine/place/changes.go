package place

// changeLog is the log of slots whose nodes changed. Tallies read it to update their counts.
type changeLog struct {
	slots []int32
	// first is the number of the first change that is kept. read is the number up to which somebody has
	// read: later entries may be merged.
	first, read uint64
}

// logKept bounds the length of the log. Tallies that fall behind count all nodes again.
const logKept = 1 << 16

// add records a change of a slot. A negative slot is ignored.
func (c *changeLog) add(slot int32) {
	if slot < 0 {
		return
	}
	if last := len(c.slots) - 1; last >= 0 && c.slots[last] == slot && c.next() > c.read {
		return // not read yet, so one entry is enough
	}
	if len(c.slots) >= logKept {
		half := len(c.slots) / 2
		c.first += uint64(half)
		c.slots = append(c.slots[:0], c.slots[half:]...)
	}
	c.slots = append(c.slots, slot)
}

// next returns the number of the next change.
func (c *changeLog) next() uint64 { return c.first + uint64(len(c.slots)) }

// markRead records that a reader has seen all changes, and returns the number of the next one.
func (c *changeLog) markRead() uint64 { c.read = c.next(); return c.read }

// since returns the changes from a number on; ok is false if some of them have been dropped.
func (c *changeLog) since(number uint64) (slots []int32, ok bool) {
	c.read = c.next()
	if number < c.first {
		return nil, false
	}
	return c.slots[number-c.first:], true
}
