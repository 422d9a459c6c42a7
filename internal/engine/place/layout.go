package place

import (
	"cmp"
	"slices"
	"strings"
)

// layout is the tree of domains over a list of node labels: the levels of a topology and, in some layouts,
// the label by which a job is exclusive. Nodes are its leaves, so Hostname is not one of the levels.
type layout struct {
	levels []string
	// extra is a label that is not a level of the topology, empty if there is none; stale is set if its
	// place among the levels may have changed.
	extra string
	stale bool

	domains []domain
	unused  []int32
	child   map[childKey]int32
	// leaf holds the domain right above the node in each slot, or outside.
	leaf []int32
	// version changes whenever a node moves to another domain; inside counts the nodes in the tree.
	version uint64
	inside  int32
}

// domain is a group of nodes that have the same values of the labels of a topology down to one level, such as all nodes
// of a rack. The first domain of a layout is the root, which contains all nodes.
type domain struct {
	parent int32
	depth  int32
	value  string
	// children are domains or, at the lowest level, nodes. They are sorted by name if ordered is set.
	children []int32
	ordered  bool
}

type childKey struct {
	parent int32
	value  string
}

// outside stands for no domain.
const outside int32 = -1

// nodeAt returns the node in a slot as a domain. Such domains are less than outside.
func nodeAt(slot int32) int32 { return -2 - slot }

// slotOf returns the slot of a domain that is a node; ok is false for other domains.
func slotOf(d int32) (slot int32, ok bool) { return -2 - d, d <= -2 }

// layoutOf returns the layout of a topology, with the label of exclusive placement if there is one. It
// creates the layout if needed.
func (m *Map) layoutOf(topology, exclusive string) *layout {
	levels := m.topologies[topology].Levels
	if last := len(levels) - 1; last >= 0 && levels[last] == Hostname {
		levels = levels[:last]
	}
	if exclusive == Hostname || slices.Contains(levels, exclusive) {
		exclusive = ""
	}
	// The label comes last, since tenants may write any bytes in it.
	key := strings.Join(m.topologies[topology].Levels, "\x00") + "\x00\x00" + exclusive
	l := m.layouts[key]
	if l != nil && !l.stale {
		return l
	}
	at := 0
	if exclusive != "" {
		at = m.insertionDepth(m.layoutOf(topology, ""), exclusive)
		if l != nil && at < len(l.levels) && l.levels[at] == exclusive {
			l.stale = false
			return l
		}
		levels = slices.Insert(slices.Clone(levels), at, exclusive)
	}
	l = &layout{levels: levels, extra: exclusive, child: map[childKey]int32{}, domains: []domain{{parent: outside}}}
	for _, n := range m.slots {
		if n != nil {
			l.set(n)
		}
	}
	l.stale = false
	m.layouts[key] = l
	return l
}

// insertionDepth returns the index at which a label belongs among the levels: above the first level whose
// domains each have only one value of the label, or below all levels.
func (m *Map) insertionDepth(l *layout, label string) int {
	for depth := int32(1); depth <= l.lowest(); depth++ {
		values, nested := map[int32]string{}, true
		for slot, leaf := range l.leaf {
			value, ok := "", false
			if leaf != outside {
				value, ok = m.slots[slot].Labels[label]
			}
			if !ok {
				continue
			}
			d := l.above(leaf, depth)
			if known, seen := values[d]; seen && known != value {
				nested = false
				break
			}
			values[d] = value
		}
		if nested {
			return int(depth) - 1
		}
	}
	return int(l.lowest())
}

// lowest returns the depth of the domains right above nodes; the root has depth 0.
func (l *layout) lowest() int32 { return int32(len(l.levels)) }

// bottom returns the depth of nodes.
func (l *layout) bottom() int32 { return l.lowest() + 1 }

// depthOf returns the depth of a level; ok is false if no level has the label.
func (l *layout) depthOf(label string) (depth int32, ok bool) {
	if label == Hostname {
		return l.bottom(), true
	}
	i := slices.Index(l.levels, label)
	return int32(i) + 1, i >= 0
}

// levelAt returns the label of the level at a depth, empty for the root.
func (l *layout) levelAt(depth int32) string {
	switch {
	case depth == 0:
		return ""
	case depth == l.bottom():
		return Hostname
	}
	return l.levels[depth-1]
}

// above returns the ancestor of a domain at the depth, or the domain itself if it is not deeper.
func (l *layout) above(d, depth int32) int32 {
	for l.depth(d) > depth {
		d = l.parent(d)
	}
	return d
}

// depth returns the depth of a domain.
func (l *layout) depth(d int32) int32 {
	if d < outside {
		return l.bottom()
	}
	return l.domains[d].depth
}

// parent returns the parent of a domain, outside for the root.
func (l *layout) parent(d int32) int32 {
	if slot, ok := slotOf(d); ok {
		return l.leaf[slot]
	}
	return l.domains[d].parent
}

// set moves a node to the domain of its labels.
func (l *layout) set(n *node) {
	if n.slot < 0 {
		return
	}
	for int(n.slot) >= len(l.leaf) {
		l.leaf = append(l.leaf, outside)
	}
	to := outside
	if n.exists {
		to = l.domainFor(n)
	}
	from := l.leaf[n.slot]
	if from == to {
		if to != outside { // its name, and so the order, may have changed
			l.domains[to].ordered = false
		}
		return
	}
	l.version++
	l.stale = l.extra != ""
	l.leaf[n.slot] = to
	if to != outside {
		l.addChild(to, nodeAt(n.slot))
		l.inside++
	}
	if from != outside {
		l.remove(from, nodeAt(n.slot))
		l.inside--
	}
}

// domainFor returns the domain of a node's labels, which it creates if needed, or outside.
func (l *layout) domainFor(n *node) int32 {
	for _, level := range l.levels {
		if _, ok := n.Labels[level]; !ok && level != l.extra { // only exclusive asks need that label, see fit
			return outside
		}
	}
	at := int32(0)
	for _, level := range l.levels {
		key := childKey{at, n.Labels[level]}
		next, ok := l.child[key]
		if !ok {
			next = l.addDomain(key)
			l.addChild(at, next)
		}
		at = next
	}
	return at
}

// addDomain creates a domain and returns its index.
func (l *layout) addDomain(key childKey) int32 {
	d := domain{parent: key.parent, depth: l.domains[key.parent].depth + 1, value: key.value}
	if last := len(l.unused) - 1; last >= 0 {
		i := l.unused[last]
		l.unused = l.unused[:last]
		l.domains[i] = d
		l.child[key] = i
		return i
	}
	l.domains = append(l.domains, d)
	l.child[key] = int32(len(l.domains) - 1)
	return l.child[key]
}

// addChild adds a domain or node to the children of a domain.
func (l *layout) addChild(parent, child int32) {
	d := &l.domains[parent]
	d.children = append(d.children, child)
	d.ordered = false
}

// remove removes a child, and with the last child the domain itself.
func (l *layout) remove(parent, child int32) {
	d := &l.domains[parent]
	if i := slices.Index(d.children, child); i >= 0 {
		d.children = slices.Delete(d.children, i, i+1)
	}
	if len(d.children) > 0 || parent == 0 {
		return
	}
	delete(l.child, childKey{d.parent, d.value})
	l.unused = append(l.unused, parent)
	up := d.parent
	l.domains[parent] = domain{parent: outside}
	l.remove(up, parent)
}

// children returns the children of a domain, sorted by name.
func (m *Map) children(l *layout, d int32) []int32 {
	of := &l.domains[d]
	if !of.ordered {
		if of.depth == l.lowest() {
			slices.SortFunc(of.children, func(a, b int32) int { return m.slots[nodeAt(a)].compare(m.slots[nodeAt(b)]) })
		} else {
			slices.SortFunc(of.children, func(a, b int32) int { return cmp.Compare(l.domains[a].value, l.domains[b].value) })
		}
		of.ordered = true
	}
	return of.children
}

// compare orders nodes by their names in places.
func (n *node) compare(other *node) int {
	return cmp.Or(cmp.Compare(n.host.name, other.host.name), cmp.Compare(n.Name, other.Name))
}

// path returns the values of the levels from the widest down to the domain.
func (l *layout) path(d int32) []string {
	var out []string
	for d = l.above(d, l.lowest()); d > 0; d = l.domains[d].parent {
		out = append(out, l.domains[d].value)
	}
	slices.Reverse(out)
	return out
}
