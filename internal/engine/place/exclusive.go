package place

import (
	"iter"
)

// Exclusive domains are tracked by label. Tenants may name any label, on any number of pods, so that no search may cost
// more the more labels there are: each node counts the tracked domains around it that pods have to themselves.

// ExclusiveLabels holds the domains of the tracked labels.
type ExclusiveLabels struct {
	nodes   *Nodes
	changes *changes

	labels map[string]exclusiveLabel
	// onNodes is the number of nodes on which pods or places are exclusive by a label.
	onNodes map[string]int
	// forgotten is set once a label was tracked and is not any more.
	forgotten bool
}

func newExclusiveLabels(nodes *Nodes, changes *changes) *ExclusiveLabels {
	return &ExclusiveLabels{nodes: nodes, changes: changes, labels: map[string]exclusiveLabel{},
		onNodes: map[string]int{}}
}

// exclusiveLabel holds the domains of a label that is used for exclusive placement, by the label's value.
type exclusiveLabel map[string]*exclusiveDomain

// exclusiveDomain is the set of nodes that share a label value.
type exclusiveDomain struct {
	nodes map[*node]bool
	// units counts the exclusive pods and absent pods in the domain, by whatever label; own counts the pods that are
	// exclusive by this label.
	units, own [books]int32
}

// Forget forgets the labels by which no pod or place is exclusive if there are more of them than keep. It reports
// whether it did. A search must not be open, which counts on the labels that it asks for.
func (el *ExclusiveLabels) Forget(keep int) bool {
	if len(el.labels)-len(el.onNodes) <= keep {
		return false
	}
	for label := range el.labels {
		if el.onNodes[label] == 0 {
			delete(el.labels, label) // Know counts again
			el.forgotten = true
		}
	}
	return true
}

// Tracks reports whether the domains of a label are tracked.
func (el *ExclusiveLabels) Tracks(label string) bool { return el.labels[label] != nil }

// Know starts to track the domains of a label.
func (el *ExclusiveLabels) Know(label string) {
	if label == "" || el.labels[label] != nil {
		return
	}
	l := exclusiveLabel{}
	el.labels[label] = l
	for _, n := range el.nodes.slots {
		if n != nil {
			l.join(n, label)
		}
	}
}

// domainsOf returns the tracked domains of a node, with their labels.
func (el *ExclusiveLabels) domainsOf(n *node) iter.Seq2[string, *exclusiveDomain] {
	return func(yield func(string, *exclusiveDomain) bool) {
		if len(el.labels) <= len(n.Labels) {
			for label, l := range el.labels {
				if d := l.domainOf(n, label); d != nil && !yield(label, d) {
					return
				}
			}
			return
		}
		for label := range n.Labels {
			if l := el.labels[label]; l != nil {
				if d := l.domainOf(n, label); d != nil && !yield(label, d) {
					return
				}
			}
		}
	}
}

// domainOf returns the domain that the node is in, nil if it is in none.
func (e exclusiveLabel) domainOf(n *node, label string) *exclusiveDomain {
	if d := e[n.Labels[label]]; d != nil && d.nodes[n] {
		return d
	}
	return nil
}

// join adds a node to the domains of its labels.
func (el *ExclusiveLabels) join(n *node) {
	for label := range n.Labels {
		if l := el.labels[label]; l != nil {
			l.join(n, label)
		}
	}
	el.touched(n)
}

// leave undoes join. It must be called before the labels change.
func (el *ExclusiveLabels) leave(n *node) {
	el.touched(n)
	for label := range n.Labels {
		if l := el.labels[label]; l != nil {
			l.leave(n, label)
		}
	}
}

func (e exclusiveLabel) join(n *node, label string) {
	value, ok := n.Labels[label]
	if !ok || !n.exists {
		return
	}
	d := e[value]
	if d == nil {
		d = &exclusiveDomain{nodes: map[*node]bool{}}
		e[value] = d
	}
	d.setNode(n, true)
	d.count(n, label, 1)
}

func (e exclusiveLabel) leave(n *node, label string) {
	d := e.domainOf(n, label)
	if d == nil {
		return
	}
	d.count(n, label, -1)
	d.setNode(n, false)
	if len(d.nodes) == 0 {
		delete(e, n.Labels[label])
	}
}

// setNode adds a node to the domain, or removes it.
func (e *exclusiveDomain) setNode(n *node, in bool) {
	change := int32(1)
	if in {
		e.nodes[n] = true
	} else {
		delete(e.nodes, n)
		change = -1
	}
	for b, own := range e.own {
		if own > 0 {
			n.inExclusive[b] += change
		}
	}
}

// count counts what is exclusive on a node of the domain, or takes it back if times is -1.
func (e *exclusiveDomain) count(n *node, label string, times int32) {
	for by, counts := range n.exclusive {
		for b, count := range counts {
			e.charge(book(b), times*count, by == label)
		}
	}
}

// charge counts exclusive pods; own says that they are exclusive by the domain's label.
func (e *exclusiveDomain) charge(b book, pods int32, own bool) {
	e.units[b] += pods
	if !own {
		return
	}
	before := e.own[b] > 0
	e.own[b] += pods
	if is := e.own[b] > 0; is != before {
		change := int32(1)
		if !is {
			change = -1
		}
		for n := range e.nodes {
			n.inExclusive[b] += change
		}
	}
}

// charge counts pods that are exclusive by a label in all domains of their node.
func (el *ExclusiveLabels) charge(n *node, b book, by string, pods int32) {
	counts := n.exclusive[by]
	if counts == nil {
		if n.exclusive == nil {
			n.exclusive = map[string]*[books]int32{}
		}
		el.Know(by)
		counts = new([books]int32)
		n.exclusive[by] = counts
		el.onNodes[by]++
	}
	counts[b] += pods
	if *counts == ([books]int32{}) {
		delete(n.exclusive, by)
		if el.onNodes[by]--; el.onNodes[by] == 0 {
			delete(el.onNodes, by)
		}
	}
	if !n.exists {
		return
	}
	for label, d := range el.domainsOf(n) {
		before := d.taken(b)
		if d.charge(b, pods, by == label); d.taken(b) != before {
			el.changed(d, pods < 0)
		}
	}
	if pods < 0 && el.forgotten {
		el.changes.freeAll()
	}
}

// taken returns what decides whether other pods may use the domain.
func (e *exclusiveDomain) taken(b book) [2]bool { return [2]bool{e.units[b] > 0, e.own[b] > 0} }

// changed records that it changed which pods may use a domain.
func (el *ExclusiveLabels) changed(d *exclusiveDomain, freed bool) {
	el.changes.happened()
	for n := range d.nodes {
		el.changes.log.add(n.slot)
		if freed {
			el.changes.markFreed(n)
		}
	}
}

// touched records that a node with exclusive pods joined its domains or leaves them.
func (el *ExclusiveLabels) touched(n *node) {
	if len(n.exclusive) == 0 {
		return
	}
	for _, d := range el.domainsOf(n) {
		el.changed(d, true)
	}
}

// blocked reports whether pods that are exclusive by the label cannot use the node: its domain
// holds other exclusive pods, or the node is in the exclusive domain of others.
func (el *ExclusiveLabels) blocked(n *node, by string, on Ledger) bool {
	if by == "" {
		return false
	}
	var own *exclusiveDomain
	if l := el.labels[by]; l != nil {
		own = l.domainOf(n, by)
	}
	for _, b := range read[on] {
		if n.inExclusive[b] > 0 || own != nil && own.units[b] > 0 {
			return true
		}
	}
	return false
}
