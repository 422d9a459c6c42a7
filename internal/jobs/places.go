package jobs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// PlacesOf reads the places that a pod set was given. Of the levels only the lowest
// matters where it is that of nodes: no two nodes share a host name.
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
			continue // the API refuses it
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

// smallestSlice is how many pods at a time must share a domain, 0 if none must.
func smallestSlice(request *kueue.PodSetTopologyRequest) int32 {
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

// For is what the pods with ranks from, and up to but not including to, get that are
// made from one template.
func (p PodSetAdmission) For(from, to int32) podspec.Injection {
	return p.Injection.Reaching(podspec.Gang{
		Places: p.Places.Ranks(from, to),
		Count:  to - from,
		Spec:   p.Pods,
		Apart:  p.SliceSize > 0 && from/p.SliceSize != (to-1)/p.SliceSize,
	}, p.Nodes)
}

// At is what one pod gets that was given that place, as a list of one; none is a pod
// that waits until it is given one, where its pod set has places.
func (p PodSetAdmission) At(place podspec.Places) podspec.Injection {
	in := p.Injection
	switch {
	case len(p.Places) == 0:
	case len(place) == 0:
		in.Gates = []string{kueue.TopologyGate}
	default:
		in = in.Reaching(podspec.Gang{Places: place, Count: 1, Spec: p.Pods}, p.Nodes)
	}
	return in
}

// Reaches reports whether the pods of a template that was admitted earlier can still
// get to all the places of those ranks. After a repair they may not.
func (p PodSetAdmission) Reaches(template corev1.PodTemplateSpec, from, to int32) bool {
	for _, place := range p.Places.Ranks(from, to) {
		if !podspec.Selects(template.Spec, place) {
			return false
		}
	}
	return true
}

// Domain is the value of the node label that all places of those ranks share; false if
// they share none, or it cannot be told since a node is gone.
func (p PodSetAdmission) Domain(label string, from, to int32) (string, bool) {
	var domain string
	for i, place := range p.Places.Ranks(from, to) {
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

// HostnameIndex finds a node by its host name, which need not be its own name: see HostnameOf. AddTo has the manager keep it.
const HostnameIndex = "metadata.labels.hostname"

// HostnameOf is the host name of a node, none where it has no such label.
func HostnameOf(object client.Object) []string {
	if name := object.GetLabels()[corev1.LabelHostname]; name != "" {
		return []string{name}
	}
	return nil
}

// nodes reads those where the Workload was given places.
func (r *reconciler[T]) nodes(ctx context.Context, w *kueue.Workload) (Nodes, error) {
	if w == nil || !workload.HoldsQuota(w) {
		return nil, nil
	}
	out := Nodes{}
	for _, a := range w.Status.Admission.PodSetAssignments {
		for _, place := range PlacesOf(a.TopologyAssignment) {
			name := place.Node()
			if _, known := out[name]; known || name == "" {
				continue
			}
			var found corev1.NodeList
			if err := r.client.List(ctx, &found, client.MatchingFields{HostnameIndex: name}, client.UnsafeDisableDeepCopy); err != nil {
				return nil, fmt.Errorf("reading the node %s: %w", name, err)
			}
			if len(found.Items) == 1 { // of two with one name, nobody knows which will be taken
				out[name] = &found.Items[0]
			}
		}
	}
	return out, nil
}
