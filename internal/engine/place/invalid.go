package place

import (
	"slices"
)

// invalidPlaces is the number of pods that need another place, by the places they have.
type invalidPlaces map[*hostPlaces]int32

func (i invalidPlaces) any() bool {
	for _, count := range i {
		if count > 0 {
			return true
		}
	}
	return false
}

// invalidOf returns the invalid places of a pod set. As many empty places as pods have ended are excused,
// since nothing will use them. It counts the ended pods itself: most Workloads report them later, and some
// only when all pods of a part have ended.
func (hs *holdings) invalidOf(h *holder, podSet int) invalidPlaces {
	set := &h.PodSets[podSet]
	var out invalidPlaces
	var empty int32 // places without a pod
	for _, hp := range h.podSets[podSet].places {
		if count := hs.countInvalid(hp); count > 0 {
			if out == nil {
				out = invalidPlaces{}
			}
			out[hp] = count
		}
		empty = addCount(empty, hp.vacant())
	}
	spare := min(addCount(max(set.Ended, hs.pods.endedOf[PodSetKey{h.key, set.Ask.PodSet}]),
		hs.countElsewhere(h, podSet)), empty)
	for _, hp := range h.podSets[podSet].places {
		if unneeded := min(spare, out[hp], hp.vacant()); unneeded > 0 {
			out[hp] -= unneeded
			spare -= unneeded
		}
	}
	return out
}

// countInvalid returns how many of the places must be replaced: all of them if the node has lost its pods, otherwise
// the places without a pod that no pod can use.
func (hs *holdings) countInvalid(hp *hostPlaces) int32 {
	n := hp.node
	if n == nil || n.Failed {
		return hp.count
	}
	if hp.absent == 0 {
		return 0
	}
	ask := hp.ask()
	if n.Cordoned || slices.Contains(ask.Avoid, hp.host.name) {
		return hp.absent
	}
	if why := hs.filters.checkNode(hs.filters.of(ask, ask.FilterKey()), n); why != Accepted {
		return hp.absent
	}
	return max(hs.crowdedOut(hp), min(hp.absent, hp.beyondLimit()))
}

// crowdedOut returns how many of the places without a pod would have to move, if no other places did, for
// the node not to be overcommitted.
func (hs *holdings) crowdedOut(hp *hostPlaces) int32 {
	b := held
	if hp.holder.Nominated {
		b = planned
	}
	n := hp.node
	ask := hp.ask()
	if n.portsTaken(b, ask.HostPorts) {
		return hp.absent
	}
	out := int64(0)
	for _, a := range hp.held().takes {
		if free := hs.usage.free.of(b, a.resource, n.slot); free < 0 {
			short := -(free + 1) // minus one: the negation of the smallest int64 overflows
			out = max(out, short/a.value+1)
		}
	}
	return int32(min(out, int64(hp.absent)))
}
