package find

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// tallyKey identifies the asks that share a tally.
type tallyKey struct {
	shape   string
	ledger  place.Ledger
	sparing bool
}

// tallies caches the tallies that were used last.
type tallies struct {
	places *place.Map
	byKey  map[tallyKey]*tally
	// definitions is the number of the definitions that the tallies were made for.
	definitions uint64
	uses        uint64
	// counted is how many nodes were counted for tallies that were new or too old to be updated.
	counted int
}

func newTallies(on *place.Map) *tallies { return &tallies{places: on, byKey: map[tallyKey]*tally{}} }

// mostTallies bounds memory: a tally takes about 10 bytes per node.
const mostTallies = 64

// tally is how many pods of one shape fit on each node and in each domain, as of a position in the change log.
type tally struct {
	shape place.Shape

	// fits is the number of pods that fit on the node in a slot; why is the refusal if none does.
	fits []int32
	why  []place.Refusal
	// sums is the number of pods that fit in each domain of the layout, whose version is recorded.
	sums    []int64
	version uint64
	// extremes holds the extremes of each domain right above nodes, where known.
	extremes []extremes
	// lost counts the nodes that each refusal takes away, nodes all nodes.
	lost  []int32
	nodes int32

	read uint64
	used uint64
}

// extremes holds the smallest number of pods that fit on a node, of the nodes on which any fits, and the
// largest.
type extremes struct {
	known        bool
	fewest, most int32
}

// extremesOf returns the extremes of a domain right above nodes.
func (t *tally) extremesOf(d int32) extremes {
	e := &t.extremes[d]
	if e.known {
		return *e
	}
	*e = extremes{known: true}
	for _, child := range t.shape.Layout.Members(d) {
		fits := t.fits[place.NodeAt(child)]
		if fits > 0 && (e.fewest == 0 || fits < e.fewest) {
			e.fewest = fits
		}
		e.most = max(e.most, fits)
	}
	return *e
}

// of returns the tally of an ask, up to date.
func (ts *tallies) of(a *place.Ask, l *place.Layout, on place.Ledger, sparing bool) *tally {
	if ts.definitions != ts.places.Definitions() {
		ts.definitions = ts.places.Definitions()
		clear(ts.byKey)
	}
	filterKey := a.FilterKey()
	key := tallyKey{a.ShapeKey(filterKey, l.Extra()), on, sparing}
	t := ts.byKey[key]
	if t == nil || t.shape.Layout != l {
		ts.evictOldest()
		t = &tally{shape: ts.places.Shapes.Of(a, filterKey, l, on)}
		t.shape.Sparing = sparing
		ts.byKey[key] = t
		ts.recount(t)
	}
	ts.uses++
	t.used = ts.uses
	ts.refresh(t)
	return t
}

// evictOldest removes the tally that was not used for longest, if there are too many.
func (ts *tallies) evictOldest() {
	if len(ts.byKey) < mostTallies {
		return
	}
	var oldest tallyKey
	least := ts.uses + 1
	for key, one := range ts.byKey {
		if one.used < least {
			oldest, least = key, one.used
		}
	}
	delete(ts.byKey, oldest)
}

// refresh applies the changes since the tally was last read.
func (ts *tallies) refresh(t *tally) {
	slots, ok := ts.places.ChangedSince(t.read)
	if !ok || len(slots) > ts.places.Nodes.Slots() {
		ts.recount(t)
		return
	}
	if t.version != t.shape.Layout.Version() {
		for _, slot := range slots {
			ts.countNode(t, slot)
		}
		t.sum()
	} else {
		for _, slot := range slots {
			if delta := ts.countNode(t, slot); delta != 0 {
				if leaf := t.shape.Layout.DomainOf(slot); leaf != place.Outside {
					t.extremes[leaf].known = false
				}
				t.shape.Layout.AddUp(t.sums, slot, delta)
			}
		}
	}
	t.read = ts.places.MarkRead()
}

// recount counts all nodes.
func (ts *tallies) recount(t *tally) {
	ts.counted += ts.places.Nodes.Slots()
	for slot := range ts.places.Nodes.Slots() {
		ts.countNode(t, int32(slot))
	}
	t.sum()
	t.read = ts.places.MarkRead()
}

// sum adds up the domains.
func (t *tally) sum() {
	l := t.shape.Layout
	t.sums = slices.Grow(t.sums[:0], l.Size())[:l.Size()]
	clear(t.sums)
	t.extremes = slices.Grow(t.extremes[:0], l.Size())[:l.Size()]
	clear(t.extremes)
	for slot, fits := range t.fits {
		if fits == 0 {
			continue
		}
		l.AddUp(t.sums, int32(slot), int64(fits))
	}
	t.version = l.Version()
}

// countNode recounts one node and returns by how many pods its count changed.
func (ts *tallies) countNode(t *tally, slot int32) int64 {
	for int(slot) >= len(t.fits) {
		t.fits = append(t.fits, 0)
		t.why = append(t.why, place.Foreign)
	}
	fits, why := ts.places.Shapes.Fit(&t.shape, slot)
	if was := t.why[slot]; was != why {
		t.countRefusal(was, -1)
		t.countRefusal(why, 1)
		t.why[slot] = why
	}
	delta := int64(fits) - int64(t.fits[slot])
	t.fits[slot] = fits
	return delta
}

// countRefusal adds a number of nodes to the count of a refusal.
func (t *tally) countRefusal(why place.Refusal, nodes int32) {
	if why == place.Foreign {
		return
	}
	t.nodes += nodes
	for int(why) >= len(t.lost) {
		t.lost = append(t.lost, 0)
	}
	t.lost[why] += nodes
}
