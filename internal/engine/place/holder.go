package place

import "github.com/musterhq/muster/internal/engine/order"

// holder is a Holding in the form in which it is charged.
type holder struct {
	Holding
	key     order.Key
	podSets []heldPodSet
}

// heldPodSet holds what one pod of a pod set uses, and the places of the pod set by host.
type heldPodSet struct {
	takes  vector
	places []*hostPlaces
	// byHost indexes places by host name; nil if there are few.
	byHost map[string]*hostPlaces
	// empty is the number of places that have no pod. emptyAreFree is set if they are no more than the pods that have
	// ended: then they are the places of the ended pods, and free.
	empty        int32
	emptyAreFree bool
	// occupied is the number of places that have a live pod; only counted for unpinned pods.
	occupied int32
}

// hostPlaces holds the places of one pod set on one host.
type hostPlaces struct {
	holder *holder
	podSet int
	host   *host
	count  int32
	// excess is the number of pods beyond these places that were asked to end. excessPresent of them are
	// there, and left out of the planned book; excessExpected are not there but may still come.
	excess, excessPresent, excessExpected int32
	// occupied places have a live pod; only counted for unpinned pods.
	occupied int32
	// absent places wait for their pods and are charged to the node, which is nil if none has the name.
	absent int32
	node   *node
}

// placesOn returns the places on a host, which it creates if needed.
func (h *heldPodSet) placesOn(ns *Nodes, of *holder, podSet int, host string) *hostPlaces {
	hp := h.at(host)
	if hp == nil {
		hp = &hostPlaces{holder: of, podSet: podSet, host: ns.hostOf(host)}
		h.add(hp)
	}
	return hp
}

// fewPlaces is the number of hosts up to which a linear search is used.
const fewPlaces = 8

func (h *heldPodSet) add(hp *hostPlaces) {
	h.places = append(h.places, hp)
	if len(h.places) <= fewPlaces {
		return
	}
	if h.byHost == nil {
		h.byHost = map[string]*hostPlaces{}
		for _, hp := range h.places {
			h.byHost[hp.host.name] = hp
		}
	}
	h.byHost[hp.host.name] = hp
}

func (h *heldPodSet) at(host string) *hostPlaces {
	if h.byHost != nil {
		return h.byHost[host]
	}
	for _, hp := range h.places {
		if hp.host.name == host {
			return hp
		}
	}
	return nil
}

// at returns the places of a pod set on a host, nil if there are none.
func (h *holder) at(podSet, host string) *hostPlaces {
	for i := range h.podSets {
		if h.PodSets[i].Ask.PodSet == podSet {
			return h.podSets[i].at(host)
		}
	}
	return nil
}

// ask returns what was asked for the pod set.
func (h *hostPlaces) ask() *Ask { return &h.holder.PodSets[h.podSet].Ask }

// held returns the pod set with all its places.
func (h *hostPlaces) held() *heldPodSet { return &h.holder.podSets[h.podSet] }

// vacant returns the number of places without a pod.
func (h *hostPlaces) vacant() int32 {
	if h.node == nil {
		return h.count
	}
	return h.absent
}

// beyondLimit returns by how many pods the places of the workload on the host exceed what kube-scheduler accepted
// there.
func (h *hostPlaces) beyondLimit() int32 {
	for _, limit := range h.ask().Limits {
		if limit.Node != h.host.name {
			continue
		}
		var sum int32
		for i := range h.holder.podSets {
			if at := h.holder.podSets[i].at(h.host.name); at != nil {
				sum = addCount(sum, at.count)
			}
		}
		return max(0, sum-limit.Count)
	}
	return 0
}

func (h *host) remove(hp *hostPlaces) {
	for i, other := range h.places {
		if other == hp {
			last := len(h.places) - 1
			h.places[i] = h.places[last]
			h.places[last] = nil
			h.places = h.places[:last]
			return
		}
	}
}
