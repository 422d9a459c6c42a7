package place

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

// exclusiveJoin adds a node to the domains of its labels.
func (m *Map) exclusiveJoin(n *node) {
	for label, l := range m.exclusive {
		l.join(n, label)
	}
	m.exclusiveTouched(n)
}

// exclusiveLeave undoes exclusiveJoin. It must be called before the labels change.
func (m *Map) exclusiveLeave(n *node) {
	for label, l := range m.exclusive {
		l.leave(n, label)
	}
	m.exclusiveTouched(n)
}

func (l *exclusiveLabel) join(n *node, label string) {
	value, ok := n.Labels[label]
	if !ok || !n.exists {
		return
	}
	d := l.domains[value]
	if d == nil {
		d = &exclusiveDomain{nodes: map[*node]bool{}}
		l.domains[value] = d
	}
	d.nodes[n] = true
	d.count(n, label, 1)
}

func (l *exclusiveLabel) leave(n *node, label string) {
	d := l.domains[n.Labels[label]]
	if d == nil || !d.nodes[n] {
		return
	}
	delete(d.nodes, n)
	d.count(n, label, -1)
	if len(d.nodes) == 0 {
		delete(l.domains, n.Labels[label])
	}
}

func (d *exclusiveDomain) count(n *node, label string, times int32) {
	for by, counts := range n.exclusive {
		for b, count := range counts {
			d.units[b] += times * count
			if by == label {
				d.own[b] += times * count
			}
		}
	}
}

// chargeExclusive counts pods that are exclusive by a label in all domains of their node.
func (m *Map) chargeExclusive(n *node, b book, by string, pods int32) {
	counts := n.exclusive[by]
	if counts == nil {
		if n.exclusive == nil {
			n.exclusive = map[string]*[books]int32{}
		}
		counts = new([books]int32)
		n.exclusive[by] = counts
	}
	counts[b] += pods
	if *counts == ([books]int32{}) {
		delete(n.exclusive, by)
	}
	if !n.exists {
		return
	}
	for label, l := range m.exclusive {
		d := l.domains[n.Labels[label]]
		if d == nil || !d.nodes[n] {
			continue
		}
		before := d.taken(b)
		d.units[b] += pods
		if by == label {
			d.own[b] += pods
		}
		if d.taken(b) != before {
			m.exclusiveChanged(d, pods < 0)
		}
	}
}

// taken returns what decides whether other pods may use the domain.
func (d *exclusiveDomain) taken(b book) [2]bool { return [2]bool{d.units[b] > 0, d.own[b] > 0} }

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

// exclusiveTouched records that a node with exclusive pods joined or left its domains.
func (m *Map) exclusiveTouched(n *node) {
	if len(n.exclusive) == 0 {
		return
	}
	for label, l := range m.exclusive {
		if d := l.domains[n.Labels[label]]; d != nil {
			m.exclusiveChanged(d, true)
		}
	}
}

// blockedByExclusive reports whether pods that are exclusive by the label cannot use the node: its domain
// holds other exclusive pods, or the node is in the exclusive domain of others.
func (m *Map) blockedByExclusive(n *node, by string, on Ledger) bool {
	if by == "" {
		return false
	}
	for label, l := range m.exclusive {
		d := l.domains[n.Labels[label]]
		if d == nil || !d.nodes[n] {
			continue
		}
		for _, b := range read[on] {
			if d.own[b] > 0 || label == by && d.units[b] > 0 {
				return true
			}
		}
	}
	return false
}
