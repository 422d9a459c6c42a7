package place

import (
	"iter"
	"maps"

	"github.com/musterhq/muster/internal/engine/order"
)

// Exclusive domains are tracked by label. Tenants may name any label, on any number of pods, so that no search may cost
// more the more labels there are: each node counts the tracked domains around it that pods have to themselves.

// exclusiveLabel holds the domains of a label that is used for exclusive placement.
type exclusiveLabel struct {
	domains map[string]*exclusiveDomain
}

// exclusiveDomain is the set of nodes that share a label value.
type exclusiveDomain struct {
	nodes map[*node]bool
	// units counts the exclusive pods and absent pods in the domain, by whatever label; own counts those
	// that are exclusive by this label.
	units, own [books]int32
}

// exclusiveKept is how many labels stay tracked though no pod or place is exclusive by them.
const exclusiveKept = 32

// boundExclusive forgets the labels by which no pod or place is exclusive if there are too many.
func (m *Map) boundExclusive() {
	if len(m.exclusive)-len(m.exclusiveOn) > exclusiveKept {
		m.forgetExclusive()
	}
}

// forgetExclusive forgets the labels by which no pod or place is exclusive. A search must not be open, which counts on
// the labels that it asks for. Tallies by these labels go too: the log does not have what changes in domains that are
// not tracked.
func (m *Map) forgetExclusive() {
	for label := range m.exclusive {
		if m.exclusiveOn[label] == 0 {
			delete(m.exclusive, label) // knowExclusive counts again
			m.exclusiveForgotten = true
		}
	}
	maps.DeleteFunc(m.tallies.byKey, func(_ tallyKey, t *tally) bool { return t.exclusive != "" && m.exclusive[t.exclusive] == nil })
}

// knowExclusive starts to track the domains of a label.
func (m *Map) knowExclusive(label string) {
	if label == "" || m.exclusive[label] != nil {
		return
	}
	l := &exclusiveLabel{domains: map[string]*exclusiveDomain{}}
	m.exclusive[label] = l
	for _, n := range m.slots {
		if n != nil {
			l.join(n, label)
		}
	}
}

// exclusiveDomainsOf returns the tracked domains of a node, with their labels.
func (m *Map) exclusiveDomainsOf(n *node) iter.Seq2[string, *exclusiveDomain] {
	return func(yield func(string, *exclusiveDomain) bool) {
		if len(m.exclusive) <= len(n.Labels) {
			for label, l := range m.exclusive {
				if d := l.domainOf(n, label); d != nil && !yield(label, d) {
					return
				}
			}
			return
		}
		for label := range n.Labels {
			if l := m.exclusive[label]; l != nil {
				if d := l.domainOf(n, label); d != nil && !yield(label, d) {
					return
				}
			}
		}
	}
}

// domainOf returns the domain that the node is in, nil if it is in none.
func (e *exclusiveLabel) domainOf(n *node, label string) *exclusiveDomain {
	if d := e.domains[n.Labels[label]]; d != nil && d.nodes[n] {
		return d
	}
	return nil
}

// exclusiveJoin adds a node to the domains of its labels.
func (m *Map) exclusiveJoin(n *node) {
	for label := range n.Labels {
		if l := m.exclusive[label]; l != nil {
			l.join(n, label)
		}
	}
	m.exclusiveTouched(n)
}

// exclusiveLeave undoes exclusiveJoin. It must be called before the labels change.
func (m *Map) exclusiveLeave(n *node) {
	m.exclusiveTouched(n)
	for label := range n.Labels {
		if l := m.exclusive[label]; l != nil {
			l.leave(n, label)
		}
	}
}

func (e *exclusiveLabel) join(n *node, label string) {
	value, ok := n.Labels[label]
	if !ok || !n.exists {
		return
	}
	d := e.domains[value]
	if d == nil {
		d = &exclusiveDomain{nodes: map[*node]bool{}}
		e.domains[value] = d
	}
	d.setNode(n, true)
	d.count(n, label, 1)
}

func (e *exclusiveLabel) leave(n *node, label string) {
	d := e.domainOf(n, label)
	if d == nil {
		return
	}
	d.count(n, label, -1)
	d.setNode(n, false)
	if len(d.nodes) == 0 {
		delete(e.domains, n.Labels[label])
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

// exclusiveBy returns the label whose domain the pod has to itself, "" if it shares. Any user may write labels and
// annotations of a pod: a pod that names the operating system would keep all exclusive jobs of others off all nodes. So
// it counts only if its workload was admitted to places that are exclusive by this label, in a domain without others.
func (m *Map) exclusiveBy(p *pod) string {
	h := m.holders[p.workload]
	if p.exclusive == "" || h == nil || h.Promised {
		return ""
	}
	for i := range h.PodSets {
		if ask := &h.PodSets[i].Ask; ask.PodSet == p.podSet && ask.ExclusiveKey == p.exclusive {
			return p.exclusive
		}
	}
	return ""
}

// recountExclusive charges the pods of a workload, whose places changed, by what they are exclusive by now.
func (m *Map) recountExclusive(workload order.Key, changed map[*node]bool) {
	c := m.podsOf[workload]
	if c == nil {
		return
	}
	for _, p := range c.pods {
		is := m.exclusiveBy(p)
		if is == p.counted {
			continue
		}
		for _, b := range []book{held, planned} {
			if b == planned && !m.isPlanned(p) {
				continue
			}
			if p.counted != "" {
				m.chargeExclusive(p.node, b, p.counted, -1)
			}
			if is != "" {
				m.chargeExclusive(p.node, b, is, 1)
			}
		}
		p.counted = is
		changed[p.node] = true
	}
}

// chargeExclusive counts pods that are exclusive by a label in all domains of their node.
func (m *Map) chargeExclusive(n *node, b book, by string, pods int32) {
	counts := n.exclusive[by]
	if counts == nil {
		if n.exclusive == nil {
			n.exclusive = map[string]*[books]int32{}
		}
		m.knowExclusive(by)
		counts = new([books]int32)
		n.exclusive[by] = counts
		m.exclusiveOn[by]++
	}
	counts[b] += pods
	if *counts == ([books]int32{}) {
		delete(n.exclusive, by)
		if m.exclusiveOn[by]--; m.exclusiveOn[by] == 0 {
			delete(m.exclusiveOn, by)
		}
	}
	if !n.exists {
		return
	}
	for label, d := range m.exclusiveDomainsOf(n) {
		before := d.taken(b)
		if d.charge(b, pods, by == label); d.taken(b) != before {
			m.exclusiveChanged(d, pods < 0)
		}
	}
	if pods < 0 && m.exclusiveForgotten {
		m.freeUntracked()
	}
}

// freeUntracked records that the domains of labels that were forgotten may be free now: jobs may wait for one.
func (m *Map) freeUntracked() {
	if m.trial > 0 {
		return
	}
	m.changes++
	for name := range m.flavors {
		if m.Places(name) {
			m.freedFlavors.Insert(name)
		}
	}
}

// taken returns what decides whether other pods may use the domain.
func (e *exclusiveDomain) taken(b book) [2]bool { return [2]bool{e.units[b] > 0, e.own[b] > 0} }

// exclusiveChanged records that it changed which pods may use a domain.
func (m *Map) exclusiveChanged(d *exclusiveDomain, freed bool) {
	if m.trial == 0 {
		m.changes++
	}
	for n := range d.nodes {
		m.log.add(n.slot)
		if freed {
			m.markFreed(n)
		}
	}
}

// exclusiveTouched records that a node with exclusive pods joined its domains or leaves them.
func (m *Map) exclusiveTouched(n *node) {
	if len(n.exclusive) == 0 {
		return
	}
	for _, d := range m.exclusiveDomainsOf(n) {
		m.exclusiveChanged(d, true)
	}
}

// blockedByExclusive reports whether pods that are exclusive by the label cannot use the node: its domain
// holds other exclusive pods, or the node is in the exclusive domain of others.
func (m *Map) blockedByExclusive(n *node, by string, on Ledger) bool {
	if by == "" {
		return false
	}
	var own *exclusiveDomain
	if l := m.exclusive[by]; l != nil {
		own = l.domainOf(n, by)
	}
	for _, b := range read[on] {
		if n.inExclusive[b] > 0 || own != nil && own.units[b] > 0 {
			return true
		}
	}
	return false
}
