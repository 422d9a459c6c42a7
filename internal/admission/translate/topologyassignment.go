package translate

import (
	"slices"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
)

// TopologyAssignment converts places into the form of the API, for a topology with the levels: by hostname alone if the
// lowest level is the hostname, else by the values of all level labels and the hostname, since the levels alone would
// not identify a node. It returns nil if a node is unknown.
func TopologyAssignment(places []place.NodeCount, levels []string,
	labelsOf func(host string) map[string]string) *kueue.TopologyAssignment {
	byHost := levels[len(levels)-1] == place.Hostname
	out := &kueue.TopologyAssignment{Levels: []string{place.Hostname},
		Domains: make([]kueue.TopologyDomainAssignment, 0, len(places))}
	if !byHost {
		out.Levels = append(slices.Clone(levels), place.Hostname)
	}
	for _, p := range places {
		values := []string{p.Node}
		if !byHost {
			labels := labelsOf(p.Node)
			if labels == nil {
				return nil
			}
			values = values[:0]
			for _, level := range levels {
				values = append(values, labels[level])
			}
			values = append(values, p.Node)
		}
		out.Domains = append(out.Domains, kueue.TopologyDomainAssignment{Values: values, Count: p.Count})
	}
	return out
}

// PlacesFrom reads a TopologyAssignment: nodes where it names nodes, and domains otherwise.
func PlacesFrom(t *kueue.TopologyAssignment) (places []place.NodeCount, within []flavor.DomainCount) {
	if t == nil || len(t.Levels) == 0 {
		return nil, nil
	}
	last := len(t.Levels) - 1
	for _, domain := range t.Domains {
		switch {
		case len(domain.Values) != len(t.Levels):
			continue // it identifies no domain
		case t.Levels[last] == place.Hostname:
			places = append(places, place.NodeCount{Node: domain.Values[last], Count: domain.Count})
		default:
			labels := make(map[string]string, len(t.Levels))
			for i, level := range t.Levels {
				labels[level] = domain.Values[i]
			}
			within = append(within, flavor.DomainCount{Labels: labels, Count: domain.Count})
		}
	}
	return places, within
}
