package podspec

import (
	"maps"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Place is a node, or a wider topology domain, for some pods of a pod set.
type Place struct {
	// Domain holds the node labels that select it: the host name of a node, or, in assignments by another controller,
	// the labels of a wider domain.
	Domain map[string]string
	// Count is how many pods go there.
	Count int32
}

// Node returns the host name of the place; "" if it is wider than a node.
func (p Place) Node() string { return p.Domain[corev1.LabelHostname] }

// Key identifies a place among the places of one Topology.
func (p Place) Key() string { return p.KeyOf(p.Domain) }

// KeyOf returns the Key of the place of the same Topology that has these labels.
func (p Place) KeyOf(labels map[string]string) string {
	if node := labels[corev1.LabelHostname]; len(p.Domain) == 1 && p.Node() != "" && node != "" {
		return node
	}
	var key string
	for _, label := range slices.Sorted(maps.Keys(p.Domain)) {
		key += label + "=" + labels[label] + "\n"
	}
	return key
}

// Places are the places of a pod set's pods in the order of their ranks: the first pods go to the first place, and so
// on. Empty Places do not restrict where pods go.
type Places []Place

// Count returns how many pods have a place.
func (p Places) Count() int32 {
	var count int32
	for _, place := range p {
		count += place.Count
	}
	return count
}

// Ranks returns the places of the pods with ranks from (inclusive) to to (exclusive). Adjacent entries for the same
// domain are merged. It looks at all places: see Ranking for many ranges.
func (p Places) Ranks(from, to int32) Places { return p.Ranking().Ranks(from, to) }

// Ranking returns the places with an index by rank.
func (p Places) Ranking() Ranking {
	r := Ranking{places: p, ends: make([]int32, 0, len(p))}
	var end int32
	for _, place := range p {
		end += place.Count
		r.ends = append(r.ends, end)
	}
	return r
}

// Ranking finds the place of a rank without looking at the places of lower ranks.
type Ranking struct {
	places Places
	// ends holds for each place the rank after its last one.
	ends []int32
}

// Count returns how many pods have a place.
func (r Ranking) Count() int32 {
	if len(r.ends) == 0 {
		return 0
	}
	return r.ends[len(r.ends)-1]
}

// Ranks returns what Places.Ranks does.
func (r Ranking) Ranks(from, to int32) Places {
	var out Places
	at := sort.Search(len(r.ends), func(i int) bool { return r.ends[i] > from })
	for ; at < len(r.ends) && r.ends[at]-r.places[at].Count < to; at++ {
		place := r.places[at]
		count := min(r.ends[at], to) - max(r.ends[at]-place.Count, from)
		if count <= 0 {
			continue
		}
		if n := len(out); n > 0 && maps.Equal(out[n-1].Domain, place.Domain) {
			out[n-1].Count += count
		} else {
			out = append(out, Place{Domain: place.Domain, Count: count})
		}
	}
	return out
}

// Gang is a number of pods that are made from one template and have places.
type Gang struct {
	Places Places
	// Count is the number of pods.
	Count int32
	// Spec is the pods' spec, as admission counted it.
	Spec corev1.PodSpec
	// SlicesApart says that pods must not swap places even if the places are of equal size, as their slices belong to
	// different domains.
	SlicesApart bool
}

// WithPlaces returns the injection extended by how the pods get to their places, so that no node gets more of them than
// have a place there, in whatever order kube-scheduler binds them: through the template alone if that guarantees it, or
// else through a scheduling gate that holds each pod until it is given a place. nodes are by host name; only their
// allocatable resources matter, not what runs on them.
func (in Injection) WithPlaces(gang Gang, nodes map[string]*corev1.Node) Injection {
	switch {
	case len(gang.Places) == 0:
	case gang.Places.Count() < gang.Count:
		in.Gates = []string{kueue.TopologyGate}
	case len(gang.Places) == 1:
		in.NodeSelector = Merged(in.NodeSelector, gang.Places[0].Domain)
	case !gang.SlicesApart && gang.fillsNodes(nodes):
		for _, place := range gang.Places {
			in.Nodes = append(in.Nodes, place.Node())
		}
	default:
		in.Gates = []string{kueue.TopologyGate}
	}
	return in
}

// fillsNodes reports whether every node of the places, if it were empty, could hold exactly as many of the pods as have
// a place there. Then any distribution of the pods is right.
func (g Gang) fillsNodes(nodes map[string]*corev1.Node) bool {
	requests := Requests(g.Spec)
	seen := map[string]bool{}
	for _, place := range g.Places {
		node := nodes[place.Node()]
		if node == nil || seen[place.Node()] ||
			capacity(node.Status.Allocatable, requests, hasHostPort(g.Spec)) != int64(place.Count) {
			return false
		}
		seen[place.Node()] = true
	}
	return true
}

// capacity returns how many pods an empty node can hold; at most one if they exclude each other.
func capacity(allocatable, requests corev1.ResourceList, exclusive bool) int64 {
	slots := allocatable[corev1.ResourcePods]
	most := slots.Value()
	if exclusive {
		most = min(most, 1)
	}
	for name, request := range requests {
		per := milli(name, request.MilliValue, request.Value)
		if per <= 0 {
			continue
		}
		has := allocatable[name]
		most = min(most, milli(name, has.MilliValue, has.Value)/per)
	}
	return most
}

// milli returns CPU in thousandths, as kube-scheduler counts it, and any other resource in units.
func milli(name corev1.ResourceName, inMilli, inUnits func() int64) int64 {
	if name == corev1.ResourceCPU {
		return inMilli()
	}
	return inUnits()
}

// hasHostPort reports whether two of the pods certainly cannot share a node. Ports of init containers do not count, as
// kube-scheduler may ignore them.
func hasHostPort(spec corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.HostPort != 0 })
	})
}

// AllowsPlace reports whether the node selector and the required node affinity of the pods permit the place, as far as
// they are about the labels of its domain.
func AllowsPlace(spec corev1.PodSpec, place Place) bool {
	for key, value := range place.Domain {
		if have, ok := spec.NodeSelector[key]; ok && have != value {
			return false
		}
	}
	terms := RequiredTerms(&spec)
	return terms == nil ||
		slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool { return allows(term, place.Domain) })
}

// NamesHost reports whether the required node affinity of the pods names the host.
func NamesHost(spec corev1.PodSpec, host string) bool {
	return HasRequirement(&spec, func(e corev1.NodeSelectorRequirement) bool {
		return e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn && slices.Contains(e.Values, host)
	})
}

func allows(term corev1.NodeSelectorTerm, domain map[string]string) bool {
	if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
		return false // an empty term matches no node
	}
	for _, e := range term.MatchExpressions {
		value, chosen := domain[e.Key]
		if chosen && e.Operator == corev1.NodeSelectorOpIn && !slices.Contains(e.Values, value) {
			return false
		}
	}
	return true
}
