package find

import "github.com/musterhq/muster/internal/engine/place"

// ruleSums are the pods that a rule looks at, by domain: the value of its label. A domain without pods is in no map.
type ruleSums struct {
	// all are the pods that count: pods that keep their places, and pods for which the search has found places.
	all domainSums
	// kept are the pods that count and keep their places.
	kept domainSums
	// own and ownKept are pods of the pod set that has the rule: in own, pods for which the search has found places, in
	// ownKept, pods that keep their places.
	own, ownKept domainSums
	// ownOutside are pods of the pod set on nodes without the label.
	ownOutside int64
	// awaited is how many asks count and have no places yet.
	awaited int
}

// domainSums are numbers of pods by domain.
type domainSums map[string]int64

func (d domainSums) add(value string, pods int64) {
	if d[value] += pods; d[value] == 0 {
		delete(d, value)
	}
}

// placed is how many pods of the workload keep their places on a node, and how many the search has placed on the node.
type placed struct{ kept, found int64 }

// countPlaced counts places that the search has found for an ask; times -1 takes them back.
func (b *bounding) countPlaced(w *want, nodes []slotCount, times int64) {
	if b == nil {
		return
	}
	if len(b.limits) > 0 {
		for _, at := range nodes {
			name := b.places.Nodes.HostAt(at.slot)
			on := b.placedOn[name]
			on.found += times * int64(at.pods)
			b.placedOn[name] = on
		}
	}
	for i := range b.rules {
		r := &b.rules[i]
		own, counts := r.owner.PodSet == w.PodSet, r.counted[w.index]
		if !own && !counts {
			continue
		}
		b.looked += len(nodes)
		for _, at := range nodes {
			r.add(b.places.Nodes.At(at.slot), times*int64(at.pods), own, counts)
		}
	}
}

// add adds pods on a node: own says that they are of the pod set with the rule, counts that the rule counts them.
func (r *rule) add(n *place.Node, pods int64, own, counts bool) {
	value, has := n.Labels[r.Key]
	switch {
	case !has && own:
		r.ownOutside += pods
	case has:
		if own {
			r.own.add(value, pods)
		}
		if counts {
			r.all.add(value, pods)
		}
	}
}

// await counts an ask that gets its places, or loses them, in its rules.
func (b *bounding) await(w *want, times int) {
	if b == nil {
		return
	}
	for i := range b.rules {
		if b.rules[i].counted[w.index] {
			b.rules[i].awaited += times
		}
	}
}
