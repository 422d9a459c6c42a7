package place

import (
	"cmp"
	"slices"
	"strings"
)

// Layout is the tree of domains over a list of node labels: the levels of a topology and, in some layouts,
// the label by which a job is exclusive. Nodes are its leaves, so Hostname is not one of the levels.
type Layout struct {
	nodes  *Nodes
	levels []string
	// extra is a label that is not a level of the topology, empty if there is none; stale is set if its
	// place among the levels may have changed.
	extra string
	stale bool

	domains []domain
	unused  []int32
	child   map[childKey]int32
	// leaf holds the domain right above the node in each slot, or Outside.
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

// Outside stands for no domain.
const Outside int32 = -1

// NodeAt returns the node in a slot as a domain. Such domains are less than Outside.
func NodeAt(slot int32) int32 { return -2 - slot }

// SlotOf returns the slot of a domain that is a node; ok is false for other domains.
func SlotOf(d int32) (slot int32, ok bool) { return -2 - d, d <= -2 }

// Layouts holds the layouts that follow the nodes, by what they are made of.
type Layouts struct {
	catalog *catalog
	nodes   *Nodes
	byKey   map[string]*Layout
}

// Of returns the layout of the topology of a flavor, with the label of exclusive placement if there is one. It creates
// the layout if needed.
func (ls *Layouts) Of(flavor, exclusive string) *Layout {
	all := ls.catalog.levels(flavor)
	levels := all
	if last := len(levels) - 1; last >= 0 && levels[last] == Hostname {
		levels = levels[:last]
	}
	if exclusive == Hostname || slices.Contains(levels, exclusive) {
		exclusive = ""
	}
	// The label comes last, since tenants may write any bytes in it.
	key := strings.Join(all, "\x00") + "\x00\x00" + exclusive
	l := ls.byKey[key]
	if l != nil && !l.stale {
		return l
	}
	at := 0
	if exclusive != "" {
		at = ls.insertionDepth(ls.Of(flavor, ""), exclusive)
		if l != nil && at < len(l.levels) && l.levels[at] == exclusive {
			l.stale = false
			return l
		}
		levels = slices.Insert(slices.Clone(levels), at, exclusive)
	}
	l = &Layout{nodes: ls.nodes, levels: levels, extra: exclusive, child: map[childKey]int32{},
		domains: []domain{{parent: Outside}}}
	for _, n := range ls.nodes.slots {
		if n != nil {
			l.set(n)
		}
	}
	l.stale = false
	ls.byKey[key] = l
	return l
}

// mostLayouts bounds the number of layouts that follow the nodes: tenants may name any label for exclusive placement.
const mostLayouts = 32

// clear drops all layouts.
func (ls *Layouts) clear() { clear(ls.byKey) }

// set moves a node to the domains of its labels, in all layouts.
func (ls *Layouts) set(n *node) {
	for _, l := range ls.byKey {
		l.set(n)
	}
}

// Bound drops all layouts if there are too many. Their domains become meaningless.
func (ls *Layouts) Bound() {
	if len(ls.byKey) > mostLayouts {
		ls.clear()
	}
}

// insertionDepth returns the index at which a label belongs among the levels: above the first level whose
// domains each have only one value of the label, or below all levels.
func (ls *Layouts) insertionDepth(l *Layout, label string) int {
	for depth := int32(1); depth <= l.Lowest(); depth++ {
		values, nested := map[int32]string{}, true
		for slot, leaf := range l.leaf {
			value, ok := "", false
			if leaf != Outside {
				value, ok = ls.nodes.slots[slot].Labels[label]
			}
			if !ok {
				continue
			}
			d := l.Above(leaf, depth)
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
	return int(l.Lowest())
}

// Lowest returns the depth of the domains right above nodes; the root has depth 0.
func (l *Layout) Lowest() int32 { return int32(len(l.levels)) }

// Bottom returns the depth of nodes.
func (l *Layout) Bottom() int32 { return l.Lowest() + 1 }

// Extra returns the label of the layout that is no level of its topology, empty if there is none.
func (l *Layout) Extra() string { return l.extra }

// Version returns a number that changes whenever a node moves to another domain.
func (l *Layout) Version() uint64 { return l.version }

// Size returns a number above all domains other than nodes.
func (l *Layout) Size() int { return len(l.domains) }

// DomainOf returns the domain right above the node in a slot, or Outside.
func (l *Layout) DomainOf(slot int32) int32 {
	if int(slot) >= len(l.leaf) {
		return Outside
	}
	return l.leaf[slot]
}

// AddUp adds a number to the sums of all domains around the node in a slot.
func (l *Layout) AddUp(sums []int64, slot int32, number int64) {
	for d := l.leaf[slot]; d != Outside; d = l.domains[d].parent {
		sums[d] += number
	}
}

// Members returns the children of a domain in any order.
func (l *Layout) Members(d int32) []int32 { return l.domains[d].children }

// Value returns the label value of a domain that is no node, empty for the root.
func (l *Layout) Value(d int32) string { return l.domains[d].value }

// HostAt returns the name of the node in a slot in places.
func (l *Layout) HostAt(slot int32) string { return l.nodes.HostAt(slot) }

// DepthOf returns the depth of a level; ok is false if no level has the label.
func (l *Layout) DepthOf(label string) (depth int32, ok bool) {
	if label == Hostname {
		return l.Bottom(), true
	}
	i := slices.Index(l.levels, label)
	return int32(i) + 1, i >= 0
}

// LevelAt returns the label of the level at a depth, empty for the root.
func (l *Layout) LevelAt(depth int32) string {
	switch {
	case depth == 0:
		return ""
	case depth == l.Bottom():
		return Hostname
	}
	return l.levels[depth-1]
}

// Above returns the ancestor of a domain at the depth, or the domain itself if it is not deeper.
func (l *Layout) Above(d, depth int32) int32 {
	for l.Depth(d) > depth {
		d = l.Parent(d)
	}
	return d
}

// Depth returns the depth of a domain.
func (l *Layout) Depth(d int32) int32 {
	if d < Outside {
		return l.Bottom()
	}
	return l.domains[d].depth
}

// Parent returns the parent of a domain, Outside for the root.
func (l *Layout) Parent(d int32) int32 {
	if slot, ok := SlotOf(d); ok {
		return l.leaf[slot]
	}
	return l.domains[d].parent
}

// set moves a node to the domain of its labels.
func (l *Layout) set(n *node) {
	if n.slot < 0 {
		return
	}
	for int(n.slot) >= len(l.leaf) {
		l.leaf = append(l.leaf, Outside)
	}
	to := Outside
	if n.exists {
		to = l.domainFor(n)
	}
	from := l.leaf[n.slot]
	if from == to {
		if to != Outside { // its name, and so the order, may have changed
			l.domains[to].ordered = false
		}
		return
	}
	l.version++
	l.stale = l.extra != ""
	l.leaf[n.slot] = to
	if to != Outside {
		l.addChild(to, NodeAt(n.slot))
		l.inside++
	}
	if from != Outside {
		l.remove(from, NodeAt(n.slot))
		l.inside--
	}
}

// domainFor returns the domain of a node's labels, which it creates if needed, or Outside.
func (l *Layout) domainFor(n *node) int32 {
	for _, level := range l.levels {
		if _, ok := n.Labels[level]; !ok && level != l.extra { // only exclusive asks need that label, see fit
			return Outside
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
func (l *Layout) addDomain(key childKey) int32 {
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
func (l *Layout) addChild(parent, child int32) {
	d := &l.domains[parent]
	d.children = append(d.children, child)
	d.ordered = false
}

// remove removes a child, and with the last child the domain itself.
func (l *Layout) remove(parent, child int32) {
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
	l.domains[parent] = domain{parent: Outside}
	l.remove(up, parent)
}

// Children returns the children of a domain, sorted by name.
func (l *Layout) Children(d int32) []int32 {
	of := &l.domains[d]
	if !of.ordered {
		if of.depth == l.Lowest() {
			slices.SortFunc(of.children,
				func(a, b int32) int { return l.nodes.slots[NodeAt(a)].compare(l.nodes.slots[NodeAt(b)]) })
		} else {
			slices.SortFunc(of.children, func(a, b int32) int { return cmp.Compare(l.domains[a].value, l.domains[b].value) })
		}
		of.ordered = true
	}
	return of.children
}

// Path returns the values of the levels from the widest down to the domain.
func (l *Layout) Path(d int32) []string {
	var out []string
	for d = l.Above(d, l.Lowest()); d > 0; d = l.domains[d].parent {
		out = append(out, l.domains[d].value)
	}
	slices.Reverse(out)
	return out
}

// Walk visits the domains of a depth within d, sorted by name.
func (l *Layout) Walk(d, depth int32, visit func(d int32)) {
	if l.Depth(d) >= depth {
		visit(d)
		return
	}
	for _, child := range l.Children(d) {
		l.Walk(child, depth, visit)
	}
}

// NamesOnce reports whether each value of a level stands for one domain only.
func (l *Layout) NamesOnce(level string) bool {
	if level == Hostname {
		return true
	}
	depth, _ := l.DepthOf(level)
	seen := map[string]bool{}
	for i := range l.domains {
		if d := &l.domains[i]; d.depth == depth && (i == 0 || d.parent != Outside) {
			if seen[d.value] {
				return false
			}
			seen[d.value] = true
		}
	}
	return level != l.extra || !seen[""]
}
