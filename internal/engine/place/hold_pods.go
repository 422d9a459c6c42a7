package place

import "github.com/musterhq/muster/internal/engine/order"

// forgetEnded removes a pod from the pods that have ended, and reports whether it was one.
func (hs *holdings) forgetEnded(key order.Key) bool {
	of, ended := hs.pods.forgetEnded(key)
	if ended && hs.holders[of.Workload] != nil {
		hs.changes.check(of.Workload)
	}
	return ended
}

// removePod takes back everything that was counted for a pod.
func (hs *holdings) removePod(p *pod) {
	hs.chargePod(p, -1)
	hs.pods.remove(p)
}

// podsChanged updates the places of the pod's workload after the pod was added or removed.
func (hs *holdings) podsChanged(p *pod) {
	hs.updatePlacesOf(p)
	hs.unpinnedChanged(p)
	if hs.pods.ofWorkload[p.workload] == nil && hs.holders[p.workload] != nil {
		hs.changes.check(p.workload) // the last pod is gone, so scattered places may be found again as a whole
	}
	hs.usage.settle(p.node)
	hs.nodes.dropUnknown(p.node)
}

// chargePod charges the requests of a pod to the books that count it.
func (hs *holdings) chargePod(p *pod, times int32) {
	if times > 0 {
		p.counted = hs.exclusiveBy(p)
	}
	hs.usage.charge(p.node, held, p.takes, p.ports, p.counted, times)
	if hs.isPlanned(p) {
		hs.usage.charge(p.node, planned, p.takes, p.ports, p.counted, times)
	}
	if p.resident {
		hs.changes.residentHappened()
		hs.usage.charge(p.node, resident, p.takes, p.ports, "", times)
	}
}

// isPlanned reports whether the planned book counts the pod: it does not if the pod is on its way out.
func (hs *holdings) isPlanned(p *pod) bool {
	h := hs.holders[p.workload]
	return h == nil || !h.podsLeaving()
}

// exclusiveBy returns the label whose domain the pod has to itself, "" if it shares. Any user may write labels and
// annotations of a pod: a pod that names the operating system would keep all exclusive jobs of others off all nodes. So
// it counts only if its workload was admitted to places that are exclusive by this label, in a domain without others.
func (hs *holdings) exclusiveBy(p *pod) string {
	h := hs.holders[p.workload]
	if p.exclusive == "" || h == nil || h.Nominated {
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
func (hs *holdings) recountExclusive(workload order.Key, changed map[*node]bool) {
	c := hs.pods.ofWorkload[workload]
	if c == nil {
		return
	}
	for _, p := range c.pods {
		is := hs.exclusiveBy(p)
		if is == p.counted {
			continue
		}
		for _, b := range []book{held, planned} {
			if b == planned && !hs.isPlanned(p) {
				continue
			}
			if p.counted != "" {
				hs.usage.exclusive.charge(p.node, b, p.counted, -1)
			}
			if is != "" {
				hs.usage.exclusive.charge(p.node, b, is, 1)
			}
		}
		p.counted = is
		changed[p.node] = true
	}
}

// movePlanned takes the pods of a workload out of the planned book when they start to leave (was is false,
// is true), or puts them back.
func (hs *holdings) movePlanned(workload order.Key, was, is bool, changed map[*node]bool) {
	c := hs.pods.ofWorkload[workload]
	if was == is || c == nil {
		return
	}
	times := int32(1)
	if is {
		times = -1
	}
	for _, p := range c.pods {
		hs.usage.charge(p.node, planned, p.takes, p.ports, p.counted, times)
		changed[p.node] = true
	}
}

// updatePlacesOf recounts the places of the pod's pod set on its host.
func (hs *holdings) updatePlacesOf(p *pod) {
	if p.node.host == nil || p.workload == (order.Key{}) {
		return
	}
	h := hs.holders[p.workload]
	if h == nil {
		return
	}
	if hp := h.at(p.podSet, p.node.host.name); hp != nil {
		hs.updatePlaces(hp)
		if hp.node != nil && hp.node != p.node { // another node with the same hostname
			hs.usage.settle(hp.node)
		}
		hs.changes.check(h.key)
	}
}

// Unpinned pods have places, so that a gang starts only if all of it fits, but nothing binds them to these places. They
// count where they are: for each unpinned pod that runs elsewhere, one of the places is free, like the place of a pod
// that has ended. Only live pods count so: a pod that is terminating, or lost by its node, will be replaced, and its
// replacement needs a place.

// countElsewhere returns the number of live pods of an unpinned pod set that are not at one of its places.
// It is called for each place that is charged, so it uses sums.
func (hs *holdings) countElsewhere(h *holder, podSet int) int32 {
	ask, c := &h.PodSets[podSet].Ask, hs.pods.ofWorkload[h.key]
	if !ask.Unpinned || h.Nominated || c == nil {
		return 0
	}
	return max(0, c.live[ask.PodSet]-h.podSets[podSet].occupied)
}

// countOccupied returns how many of the places have a live pod, 0 if the pods are not unpinned.
func (hs *holdings) countOccupied(hp *hostPlaces) int32 {
	ask, c := hp.ask(), hs.pods.ofWorkload[hp.holder.key]
	if !ask.Unpinned || c == nil {
		return 0
	}
	var count int32
	for _, n := range hp.host.nodes {
		if at := (podSetOnNode{ask.PodSet, n.Name}); n.up() {
			count += c.present[at] - c.terminating[at]
		}
	}
	return min(hp.count, count)
}

// unpinnedChangedOn calls unpinnedChanged for all pods on the node.
func (hs *holdings) unpinnedChangedOn(n *node) {
	for _, p := range n.pods {
		hs.unpinnedChanged(p)
	}
}

// unpinnedChanged updates which places of the pod's workload are free after an unpinned pod was added,
// removed, lost or found again.
func (hs *holdings) unpinnedChanged(p *pod) {
	h := hs.holders[p.workload]
	if h == nil {
		return
	}
	for i := range h.PodSets {
		if ask := &h.PodSets[i].Ask; ask.Unpinned && ask.PodSet == p.podSet {
			hs.updateEmpty(h, i)
			hs.changes.check(p.workload)
		}
	}
}
