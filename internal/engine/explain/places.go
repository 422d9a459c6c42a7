package explain

import (
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/place/find"
)

// nodesOf diagnoses the nodes of a flavor for a pod set, regardless of quota; nil if the pod set is not placed on
// nodes.
func (ex *explainer) nodesOf(podSet int, l *flavor.FlavorFit) *find.Diagnosis {
	ps := &ex.w.Shape.PodSets[podSet]
	if l.Refusal != "" || ps.Needed() == 0 || !ex.Nodes.Places.IsPlaced(l.Flavor) {
		return nil
	}
	ask := ex.askOf(ps, ps.Needed(), l)
	said := ex.Nodes.Finder.Diagnose([]place.Ask{ask})
	if !said.Fits && ask.Group != "" {
		said.Relaxation = ex.Nodes.Finder.Diagnose(ex.groupOf(ask.Group, l.Flavor)).Relaxation
	}
	return &said
}

// askOf returns what this number of pods of a pod set asks of the nodes of a flavor.
func (ex *explainer) askOf(ps *flavor.PodSet, pods int32, l *flavor.FlavorFit) place.Ask {
	given := flavor.Assignment{PodSet: ps.Name, Count: pods, Flavors: map[string]string{"": l.Flavor}}
	ask, _ := ex.Nodes.AskOf(ps, &given, &ex.w.Avoid)
	return ask
}

// asksWithoutPlaces returns what a pod set of this count asks of the nodes of the flavor if these, as diagnosed, lack
// capacity for it.
func (ex *explainer) asksWithoutPlaces(podSet int, count int32, l *flavor.FlavorFit,
	nodes *find.Diagnosis) []place.Ask {
	if nodes == nil || nodes.Fits || count == 0 {
		return nil
	}
	return []place.Ask{ex.askOf(&ex.w.Shape.PodSets[podSet], count, l)}
}

// fitOnceGone reports whether the asks have places once the workloads that are leaving are gone, or need quota alone
// since they wait for new nodes.
func (ex *explainer) fitOnceGone(asks []place.Ask) bool {
	return len(asks) == 0 || ex.Nodes.Finder.Fits(asks, place.Planned) ||
		ex.w.ClusterQueue.OnDemand && !ex.Nodes.Finder.EverFits(asks)
}

// groupOf returns the asks of all pod sets of a group in the flavor: a single one cannot be placed in another domain
// than the rest.
func (ex *explainer) groupOf(group, of string) []place.Ask {
	var given []flavor.Assignment
	for i := range ex.w.Shape.PodSets {
		ps := &ex.w.Shape.PodSets[i]
		a := flavor.Assignment{PodSet: ps.Name, Flavors: map[string]string{"": of}}
		if ps.Topology != nil && ps.Topology.Group == group {
			a.Count = ps.Needed()
		}
		given = append(given, a)
	}
	return ex.Nodes.AsksOf(ex.w.Shape.PodSets, given, ex.w.Avoid)
}

// together diagnoses the nodes for all pod sets in their nearest flavors; nil if all fit, or if one does not even fit
// alone, which its flavor then says.
func (ex *explainer) together() *find.Diagnosis {
	var given []flavor.Assignment
	looks := 0
	for i := range ex.out.PodSets {
		ps := &ex.w.Shape.PodSets[i]
		a := flavor.Assignment{PodSet: ps.Name, Count: ps.Needed(), Flavors: map[string]string{}}
		for _, said := range ex.out.PodSets[i].Flavors {
			if !said.Nearest || said.Nodes == nil {
				continue
			}
			if !said.Nodes.Fits {
				return nil
			}
			a.Flavors[said.Flavor] = said.Flavor // the resource does not matter: nodes must match all flavors
			looks++
		}
		if len(a.Flavors) == 0 {
			a.Count = 0 // its pods are not placed on nodes
		}
		given = append(given, a)
	}
	if looks < 2 {
		return nil
	}
	said := ex.Nodes.Finder.Diagnose(ex.Nodes.AsksOf(ex.w.Shape.PodSets, given, ex.w.Avoid))
	if said.Fits {
		return nil
	}
	return &said
}
