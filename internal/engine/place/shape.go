package place

// Shapes says how many pods of a shape fit on a node.
type Shapes struct {
	resources *resources
	nodes     *Nodes
	usage     *Usage
	exclusive *ExclusiveLabels
	filters   *filters
}

// Shape is what decides how many pods fit on a node: equal pods, and the ledger in which they are placed.
type Shape struct {
	Load Load
	On   Ledger
	// Sparing excludes nodes with devices that the pods do not ask for.
	Sparing bool
	// Exclusive is the label whose domain the pods have to themselves, empty if they share.
	Exclusive string
	Layout    *Layout
	filter    *Filter
}

// Of returns the shape of the pods of an ask, whose filterKey the caller knows.
func (s *Shapes) Of(a *Ask, filterKey string, l *Layout, on Ledger) Shape {
	return Shape{Load: s.LoadOf(a), On: on, Exclusive: a.ExclusiveKey, Layout: l, filter: s.filters.of(a, filterKey)}
}

// LoadOf returns what a pod of an ask uses.
func (s *Shapes) LoadOf(a *Ask) Load { return Load{s.resources.vector(a.PerPod), a.HostPorts} }

// FilterOf returns which nodes the pods of an ask may use.
func (s *Shapes) FilterOf(a *Ask) *Filter { return s.filters.of(a, a.FilterKey()) }

// SparesDevices reports whether any node has a device that a pod of the load does not use.
func (s *Shapes) SparesDevices(l *Load) bool {
	for device := range s.nodes.devices {
		if !l.takes.has(device) {
			return true
		}
	}
	return false
}

// Limit returns the resource that limits how many pods of a shape fit on the node in a slot, which refuses pods for the
// given reason; ok is false if something else does, or nothing.
func (s *Shapes) Limit(of *Shape, slot int32, why Refusal) (resource int32, ok bool) {
	if why != Accepted && !s.filters.refusals.ofResource(why) {
		return 0, false
	}
	_, resource = s.usage.free.fit(of.Load.takes, of.On, slot)
	return resource, resource >= 0
}

// ResourceName returns the name of a resource that limits pods of an ask.
func (s *Shapes) ResourceName(resource int32, a *Ask) string {
	return s.resources.nameOf(resource, a.PerPod)
}

// RefusalText returns the text of a refusal of pods of an ask.
func (s *Shapes) RefusalText(why Refusal, a *Ask) string { return s.filters.refusalText(why, a.PerPod) }

// Fit returns how many pods of a shape fit in a slot and, if none does, why.
func (s *Shapes) Fit(of *Shape, slot int32) (int32, Refusal) {
	mark := &s.usage.free.marks[slot]
	if mark.version == 0 {
		return 0, Foreign
	}
	if why := s.filters.cachedCheck(of.filter, slot, mark.version); why != Accepted {
		return 0, why
	}
	switch {
	case of.Layout.leaf[slot] == Outside || of.Exclusive != "" && !hasLabel(&s.nodes.slots[slot].Node, of.Exclusive):
		return 0, refusedTopology
	case mark.cordoned && of.On != Empty:
		return 0, refusedCordoned
	case of.Sparing && s.nodes.slots[slot].hasOtherDevice(of.Load.takes):
		return 0, refusedOther
	case mark.avoided:
		return 0, refusedAvoided
	case mark.ported && len(of.Load.ports) > 0 && !s.nodes.slots[slot].portsFree(of.Load.ports, of.On):
		return 0, refusedPort
	case of.Exclusive != "" && s.exclusive.blocked(s.nodes.slots[slot], of.Exclusive, of.On):
		return 0, refusedExclusive
	}
	fits, bound := s.usage.free.fit(of.Load.takes, of.On, slot)
	if fits == 0 {
		return 0, s.filters.refusedFor(bound)
	}
	if len(of.Load.ports) > 0 {
		fits = 1
	}
	return int32(fits), Accepted
}

// ShapeKey identifies asks with equal pods.
func (a *Ask) ShapeKey(filterKey, extra string) string {
	var k keyText
	k.text(filterKey)
	k.text(extra)
	k.amounts(a.PerPod)
	for _, p := range a.HostPorts {
		k.text(p.IP)
		k.text(string(p.Protocol))
		k.number(int64(p.Port))
	}
	k.text(a.ExclusiveKey)
	return string(k)
}
