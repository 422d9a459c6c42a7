package place

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Unpinned pods have places, so that a gang starts only if all of it fits, but nothing binds them to these places. They
// count where they are: for each one that runs elsewhere, one of the places is free, like that of a pod that has ended.
// Only live pods count so: a pod that is terminating, or lost by its node, will be replaced, and its replacement needs a
// place.

// jobLabel returns the label requirement by which unpinned pods choose nodes: the last expression of every
// term of their node affinity, nil if there is none. It stands for the node selector that each Job of a
// JobSet has for the nodes that users label for it; the job's author wrote no affinity.
func (a *Ask) jobLabel() *corev1.NodeSelectorRequirement {
	if !a.Unpinned || a.required() == nil {
		return nil
	}
	var out *corev1.NodeSelectorRequirement
	for _, term := range a.required().NodeSelectorTerms {
		n := len(term.MatchExpressions)
		if n == 0 || term.MatchExpressions[n-1].Operator != corev1.NodeSelectorOpIn {
			return nil
		}
		last := &term.MatchExpressions[n-1]
		if out != nil && (out.Key != last.Key || !slices.Equal(out.Values, last.Values)) {
			return nil
		}
		out = last
	}
	return out
}

// dropJobLabel removes the requirement that jobLabel returns.
func (a *Ask) dropJobLabel() {
	a.Affinity = a.Affinity.DeepCopy()
	var others []corev1.NodeSelectorTerm
	for _, term := range a.required().NodeSelectorTerms {
		if term.MatchExpressions = term.MatchExpressions[:len(term.MatchExpressions)-1]; len(term.MatchExpressions)+len(term.MatchFields) > 0 {
			others = append(others, term)
		}
	}
	if a.required().NodeSelectorTerms = others; len(others) == 0 {
		a.Affinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
}

// countElsewhere returns the number of live pods of an unpinned pod set that are not at one of its places.
// It is called for each place that is charged, so it uses sums.
func (m *Map) countElsewhere(h *holder, podSet int) int32 {
	ask, c := &h.PodSets[podSet].Ask, m.podsOf[h.key]
	if !ask.Unpinned || h.Promised || c == nil {
		return 0
	}
	return max(0, c.live[ask.PodSet]-h.podSets[podSet].occupied)
}

// countOccupied returns how many of the places have a live pod, 0 if the pods are not unpinned.
func (m *Map) countOccupied(s *hostPlaces) int32 {
	ask, c := &s.holder.PodSets[s.podSet].Ask, m.podsOf[s.holder.key]
	if !ask.Unpinned || c == nil {
		return 0
	}
	var count int32
	for _, n := range s.host.nodes {
		if at := (podSetOnNode{ask.PodSet, n.Name}); n.up() {
			count += c.present[at] - c.terminating[at]
		}
	}
	return min(s.count, count)
}

// up reports whether pods on the node are alive: it exists and has not failed.
func (n *node) up() bool { return n.exists && !n.Failed }

// changeUp applies a change to the node and updates the counts of live pods. It reports whether up
// changed: then the caller must call unpinnedChangedOn once places have been moved to their nodes.
func (m *Map) changeUp(n *node, change func()) (changed bool) {
	before := n.up()
	change()
	if n.up() == before {
		return false
	}
	times := int32(1)
	if before {
		times = -1
	}
	for _, p := range n.pods {
		if c := m.podsOf[p.workload]; c != nil && !p.terminating {
			countIn(c.live, p.podSet, times)
		}
	}
	return true
}

// unpinnedChangedOn calls unpinnedChanged for all pods on the node.
func (m *Map) unpinnedChangedOn(n *node) {
	for _, p := range n.pods {
		m.unpinnedChanged(p)
	}
}

// unpinnedChanged updates which places of the pod's workload are free after an unpinned pod was added,
// removed, lost or found again.
func (m *Map) unpinnedChanged(p *pod) {
	h := m.holders[p.workload]
	if h == nil {
		return
	}
	for i := range h.PodSets {
		if ask := &h.PodSets[i].Ask; ask.Unpinned && ask.PodSet == p.podSet {
			m.updateEmpty(h, i)
			if m.trial == 0 {
				m.toCheck.Insert(p.workload)
			}
		}
	}
}
