package place

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Pods that are loose have places, so that a gang starts only where there is room for all of it, and nobody who brings them there. What
// counts is where they are: for each of them that is elsewhere one of their places is nobody's, as that of a pod that has ended is. Only
// pods that stand count so: for one that its node has lost, or that goes, another comes, and needs a place.

// labelledFor is the label by which pods that are loose choose nodes, and its values there: the last that every term of their affinity
// asks for. People give it to nodes for them, and whoever wrote the job knows of no affinity. It is nil for other pods.
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

// unlabelled has them choose nodes in all other ways alone.
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

// besides is how many pods of a pod set that is loose stand where it has no place for them. It is asked at each place that is
// counted: it goes by sums.
func (m *Map) countElsewhere(h *holder, podSet int) int32 {
	ask, c := &h.PodSets[podSet].Ask, m.podsOf[h.key]
	if !ask.Unpinned || h.Promised || c == nil {
		return 0
	}
	return max(0, c.live[ask.PodSet]-h.podSets[podSet].occupied)
}

// standingIn is how many of the seats have a pod that stands, none where the pods are not loose.
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

// stands reports whether pods on the node are there: it exists, and has not lost them.
func (n *node) up() bool { return n.exists && !n.Failed }

// restand changes what the node is, and has the pods on it count by whether it stands then. It reports whether that is another
// answer than before: looseOn is for when places are where nodes are again.
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

// looseOn has the places of all who have pods on the node count by how many of them stand now.
func (m *Map) unpinnedChangedOn(n *node) {
	for _, p := range n.pods {
		m.unpinnedChanged(p)
	}
}

// looseChanged has the places of a pod that came or went count by how many are elsewhere now.
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
