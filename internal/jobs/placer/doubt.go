package placer

import (
	corev1 "k8s.io/api/core/v1"
)

// A pod without a rank may take any free place, but not all of them may be good. The places of pods that have succeeded
// stay in the assignment, though others may have been given their capacity since, and are not moved when their node is
// lost: nobody needs them. Only as many places as pods are missing are known to be good, and the good places come
// first.

// rateDoubts notes what makes free places of the group doubtful, given its pods that have succeeded.
func (g *groupPlaces) rateDoubts(succeeded []*corev1.Pod, known nodes) {
	for _, pod := range succeeded {
		if d := g.domainOf(nodeLabelsOf(pod, known)); d != nil {
			d.succeeded++
		}
	}
	for _, d := range g.domains {
		if node := d.place.Node(); node != "" && d.free() {
			d.closed = !known.open(node)
		}
	}
}

// vacancies holds the domains of a part of the group, in the order of places. Pods that are given them only make a
// domain fuller and more doubtful, so that none that next has passed becomes better again.
type vacancies struct {
	domains   []*domain
	at, doubt int
}

// vacancies returns the vacancies of each part.
func (g *groupPlaces) vacancies() map[int32]*vacancies {
	out := map[int32]*vacancies{}
	for _, d := range g.ordered {
		part := g.partAt(d)
		if out[part] == nil {
			out[part] = &vacancies{}
		}
		out[part].domains = append(out[part].domains, d)
	}
	return out
}

// next returns the domain with a free place that is least in doubt, the first of equal ones; nil if there is none.
func (v *vacancies) next() *domain {
	for ; v != nil && v.doubt <= mostDoubt; v.at, v.doubt = 0, v.doubt+1 {
		for ; v.at < len(v.domains); v.at++ {
			if d := v.domains[v.at]; d.free() && d.doubt() <= v.doubt {
				return d
			}
		}
	}
	return nil
}

// mostDoubt is the highest doubt.
const mostDoubt = 2

// doubt ranks domains with a free place by how likely it is not to be good.
func (d *domain) doubt() int {
	switch {
	case d.closed:
		return mostDoubt
	case int32(len(d.live))+d.terminating+d.succeeded >= d.size:
		return 1
	}
	return 0
}
