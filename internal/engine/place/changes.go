package place

// changes is the log of the slots whose nodes changed, from which tallies are brought
// up to date.
type changeLog struct {
	slots []int32
	// first is the number of the first one that is kept; those before read are known to
	// somebody.
	first, read uint64
}

// logKept bounds the log, in multiples of what it costs to count all nodes.
const logKept = 1 << 16

func (c *changeLog) add(slot int32) {
	if slot < 0 {
		return
	}
	if last := len(c.slots) - 1; last >= 0 && c.slots[last] == slot && c.next() > c.read {
		return // nobody read it yet
	}
	if len(c.slots) >= logKept {
		half := len(c.slots) / 2
		c.first += uint64(half)
		c.slots = append(c.slots[:0], c.slots[half:]...)
	}
	c.slots = append(c.slots, slot)
}

// now is the number of the next change.
func (c *changeLog) next() uint64 { return c.first + uint64(len(c.slots)) }

// reads says that somebody who counted everything knows all there is.
func (c *changeLog) markRead() uint64 { c.read = c.next(); return c.read }

// since are the changes from a number on; ok is false if they are no longer known.
func (c *changeLog) since(number uint64) (slots []int32, ok bool) {
	c.read = c.next()
	if number < c.first {
		return nil, false
	}
	return c.slots[number-c.first:], true
}
