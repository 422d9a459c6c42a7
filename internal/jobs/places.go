package jobs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// PlacesOf returns the places of a topology assignment. If the lowest level is the host name, the levels above it are
// dropped: no two nodes share a host name.
func PlacesOf(assignment *kueue.TopologyAssignment) podspec.Places {
	if assignment == nil {
		return nil
	}
	levels := assignment.Levels
	if n := len(levels); n > 0 && levels[n-1] == corev1.LabelHostname {
		levels = levels[n-1:]
	}
	var out podspec.Places
	for _, domain := range assignment.Domains {
		values := domain.Values
		if len(values) < len(levels) {
			continue // the API rejects such a domain
		}
		values = values[len(values)-len(levels):]
		place := podspec.Place{Domain: make(map[string]string, len(levels)), Count: domain.Count}
		for i, level := range levels {
			place.Domain[level] = values[i]
		}
		out = append(out, place)
	}
	return out
}

// SmallestSlice returns how many pods at a time must share a domain, 0 if none must.
func SmallestSlice(request *kueue.PodSetTopologyRequest) int32 {
	if request == nil {
		return 0
	}
	var smallest int32
	if request.PodSetSliceSize != nil {
		smallest = *request.PodSetSliceSize
	}
	for _, layer := range request.PodsetSliceRequiredTopologyConstraints {
		if smallest == 0 || layer.Size < smallest {
			smallest = layer.Size
		}
	}
	return smallest
}

// Part is the part of a pod set whose pods have ranks from From (inclusive) to To (exclusive).
type Part struct {
	From, To int32
	// Places are the places of these ranks.
	Places podspec.Places
}

// All returns all admitted pods as one part.
func (p PodSetAdmission) All() Part {
	return Part{To: p.Count, Places: p.Places.Ranks(0, p.Count)}
}

// For returns the injection for the pods of the part, made from one template.
func (p PodSetAdmission) For(part Part) podspec.Injection {
	return p.Injection.WithPlaces(podspec.Gang{
		Places:      part.Places,
		Count:       part.To - part.From,
		Spec:        p.Pods,
		SlicesApart: p.SliceSize > 0 && part.From/p.SliceSize != (part.To-1)/p.SliceSize,
	}, p.Nodes)
}

// At returns the injection for a single pod at the given place. If the pod set has places and none is given, the pod is
// gated until it gets one.
func (p PodSetAdmission) At(place podspec.Places) podspec.Injection {
	in := p.Injection
	switch {
	case len(p.Places) == 0:
	case len(place) == 0:
		in.Gates = []string{kueue.TopologyGate}
	default:
		in = in.WithPlaces(podspec.Gang{Places: place, Count: 1, Spec: p.Pods}, p.Nodes)
	}
	return in
}

// Reached reports whether pods made from an earlier admitted template can still be scheduled to all places of the part.
// After a repair, they may not.
func (p Part) Reached(template corev1.PodTemplateSpec) bool {
	for _, place := range p.Places {
		if !podspec.AllowsPlace(template.Spec, place) {
			return false
		}
	}
	return true
}

// Domain returns the value of the node label that all places of the part share. It returns false if they do not share
// one, or if that is unknown because a node is gone.
func (p PodSetAdmission) Domain(label string, part Part) (string, bool) {
	var domain string
	for i, place := range part.Places {
		value, ok := place.Domain[label]
		if node := p.Nodes[place.Node()]; !ok && node != nil {
			value, ok = node.Labels[label]
		}
		if !ok || i > 0 && value != domain {
			return "", false
		}
		domain = value
	}
	return domain, domain != ""
}

// HostnameIndex finds a node by its host name, as of HostnameOf, which may differ from the node's name. AddTo registers
// it.
const HostnameIndex = "metadata.labels.hostname"

// HostnameOf returns the host name of a node, nil if it has no label with one.
func HostnameOf(object client.Object) []string {
	if name := object.GetLabels()[corev1.LabelHostname]; name != "" {
		return []string{name}
	}
	return nil
}

// IsReadyNode reports whether the node runs pods.
func IsReadyNode(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
