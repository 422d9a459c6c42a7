package podspec

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Place is where some pods of a pod set go.
type Place struct {
	// Domain are the node labels that choose it: the host name of a node, or, where
	// somebody else has given the places, the labels of a wider domain.
	Domain map[string]string
	// Count of pods that go there.
	Count int32
}

// Node is the host name of the place, "" if it is wider than a node.
func (p Place) Node() string { return p.Domain[corev1.LabelHostname] }

// Key tells places of one Topology apart.
func (p Place) Key() string {
	if node := p.Node(); node != "" && len(p.Domain) == 1 {
		return node
	}
	var key string
	for _, label := range slices.Sorted(maps.Keys(p.Domain)) {
		key += label + "=" + p.Domain[label] + "\n"
	}
	return key
}

// Places are where the pods of a pod set go, in the order of their ranks: the first
// pods to the first place, and so on. No places are no say in where pods go.
type Places []Place

// Count is how many pods have a place.
func (p Places) Count() int32 {
	var count int32
	for _, place := range p {
		count += place.Count
	}
	return count
}

// Ranks are the places of the pods with ranks from, and up to but not including to,
// those next to each other on one node as one.
func (p Places) Ranks(from, to int32) Places {
	var out Places
	var first int32
	for _, place := range p {
		last := first + place.Count
		if count := min(last, to) - max(first, from); count > 0 {
			if n := len(out); n > 0 && maps.Equal(out[n-1].Domain, place.Domain) {
				out[n-1].Count += count
			} else {
				out = append(out, Place{Domain: place.Domain, Count: count})
			}
		}
		first = last
	}
	return out
}

// Gang are pods that are made from one template and have places.
type Gang struct {
	Places Places
	// Count of the pods.
	Count int32
	// Spec is the pods', as admission counted it.
	Spec corev1.PodSpec
	// Apart says that some of them must not take the places of others, though those
	// are as large: their slices belong to different domains.
	SlicesApart bool
}

// Reaching returns the injection with how the pods reach their places, such that no
// order in which kube-scheduler binds them puts more of them on a node than have a
// place there: by their template where that is so by itself, else by a gate that holds
// each until it was given a place. Of the nodes, by host name, only what they can give
// at all matters, never what else is on them.
func (in Injection) WithPlaces(gang Gang, nodes map[string]*corev1.Node) Injection {
	switch {
	case len(gang.Places) == 0:
	case gang.Places.Count() < gang.Count:
		in.Gates = []string{kueue.TopologyGate}
	case len(gang.Places) == 1:
		in.NodeSelector = merged(in.NodeSelector, gang.Places[0].Domain)
	case !gang.SlicesApart && gang.fillsNodes(nodes):
		for _, place := range gang.Places {
			in.Nodes = append(in.Nodes, place.Node())
		}
	default:
		in.Gates = []string{kueue.TopologyGate}
	}
	return in
}

// fills reports whether every node of the places can hold as many of the pods as have
// a place there, and not one more even if it were empty: then they end up as they
// should, wherever each of them goes.
func (g Gang) fillsNodes(nodes map[string]*corev1.Node) bool {
	requests := Requests(g.Spec)
	seen := map[string]bool{}
	for _, place := range g.Places {
		node := nodes[place.Node()]
		if node == nil || seen[place.Node()] || capacity(node.Status.Allocatable, requests, hasHostPort(g.Spec)) != int64(place.Count) {
			return false
		}
		seen[place.Node()] = true
	}
	return true
}

// capacity is how many pods an empty node can hold.
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

// milli counts CPU in thousandths, as kube-scheduler does, and all else in whole units.
func milli(name corev1.ResourceName, inMilli, inUnits func() int64) int64 {
	if name == corev1.ResourceCPU {
		return inMilli()
	}
	return inUnits()
}

// hasHostPort reports whether two of the pods surely cannot share a node. Ports that
// kube-scheduler may not look at do not count.
func hasHostPort(spec corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.HostPort != 0 })
	})
}

// Selects reports whether the pods of a template may go to the place, as far as the
// labels that choose it matter.
func AllowsPlace(spec corev1.PodSpec, place Place) bool {
	for key, value := range place.Domain {
		if have, ok := spec.NodeSelector[key]; ok && have != value {
			return false
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if allows(term, place.Domain) {
			return true
		}
	}
	return false
}

// Names reports whether the pods of a template may go to the host since its affinity names it.
func NamesHost(spec corev1.PodSpec, host string) bool {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	return slices.ContainsFunc(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn && slices.Contains(e.Values, host)
		})
	})
}

func allows(term corev1.NodeSelectorTerm, domain map[string]string) bool {
	if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
		return false // as the API has it
	}
	for _, e := range term.MatchExpressions {
		value, chosen := domain[e.Key]
		if chosen && e.Operator == corev1.NodeSelectorOpIn && !slices.Contains(e.Values, value) {
			return false
		}
	}
	return true
}
