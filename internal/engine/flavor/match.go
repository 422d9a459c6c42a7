package flavor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/musterhq/muster/internal/engine/place"
)

// refuses returns why pods of the set cannot run on the flavor's nodes, or "".
//
// Only labels that the flavor itself has are considered: the scheduler honors selectors for other labels among the
// flavor's nodes.
func refuses(f Flavor, ps PodSet) string {
	if taint := untolerated(f, ps); taint != nil {
		return fmt.Sprintf("untolerated taint {%s %s %s <nil>} in flavor %s", taint.Key, taint.Value, taint.Effect, f.Name)
	}
	node := &corev1.Node{}
	node.Labels = f.NodeLabels
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(restrict(ps, sets.KeySet(f.NodeLabels))).
		Match(node); err != nil || !ok {
		return fmt.Sprintf("flavor %s doesn't match node affinity", f.Name)
	}
	return ""
}

// untolerated returns the first taint of the flavor that keeps the pods off its nodes, nil if there is none.
func untolerated(f Flavor, ps PodSet) *corev1.Taint {
	if !slices.ContainsFunc(f.NodeTaints, func(t corev1.Taint) bool { return blocksScheduling(&t) }) {
		return nil
	}
	tolerance := place.ToleranceOf(ps.Tolerations, f.Tolerations)
	for i := range f.NodeTaints {
		if t := &f.NodeTaints[i]; blocksScheduling(t) && !tolerance.Tolerates(t) {
			return t
		}
	}
	return nil
}

// refusesTopology returns why pods of the set cannot be placed on the flavor's nodes as close together as they
// request, or "". topologies has the levels of all existing topologies.
func refusesTopology(f Flavor, ps PodSet, topologies map[string][]string) string {
	if f.Topology == "" {
		if ps.Topology != nil && !ps.onlyExclusive() {
			return fmt.Sprintf("flavor %s does not support TopologyAwareScheduling", f.Name)
		}
		return ""
	}
	levels, exists := topologies[f.Topology]
	if !exists {
		return fmt.Sprintf("topology %s of flavor %s not found", f.Topology, f.Name)
	}
	if ps.Topology == nil {
		return ""
	}
	asked := []string{ps.Topology.Level}
	for _, slice := range ps.Topology.Slices {
		asked = append(asked, slice.Level)
	}
	for _, level := range asked {
		if level != "" && level != corev1.LabelHostname && level != ps.ExclusiveKey && !slices.Contains(levels, level) {
			return fmt.Sprintf("topology %s of flavor %s has no level %s; it has %s", f.Topology, f.Name, level,
				strings.Join(levels, ", "))
		}
	}
	return ""
}

// onlyExclusive reports whether the pods request nothing but exclusive domains. These may be of any node label, and
// without assigned places the pods find them by pod affinity.
func (ps *PodSet) onlyExclusive() bool {
	return ps.ExclusiveKey != "" && ps.Topology.Level == "" && ps.Topology.Group == "" &&
		!slices.ContainsFunc(ps.Topology.Slices, func(s place.Slice) bool { return s.Level != ps.ExclusiveKey })
}

func blocksScheduling(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// restrict returns a pod with the set's requirements on the given labels. A term without any remaining requirement
// matches every flavor, and then so does the whole affinity, since terms are alternatives.
func restrict(ps PodSet, labels sets.Set[string]) *corev1.Pod {
	pod := &corev1.Pod{}
	for key, value := range ps.NodeSelector {
		if labels.Has(key) {
			if pod.Spec.NodeSelector == nil {
				pod.Spec.NodeSelector = map[string]string{}
			}
			pod.Spec.NodeSelector[key] = value
		}
	}
	if ps.Affinity == nil || ps.Affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return pod
	}
	required := &corev1.NodeSelector{}
	for _, term := range ps.Affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var kept corev1.NodeSelectorTerm
		for _, e := range term.MatchExpressions {
			if labels.Has(e.Key) {
				kept.MatchExpressions = append(kept.MatchExpressions, e)
			}
		}
		if len(kept.MatchExpressions) == 0 {
			return pod
		}
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, kept)
	}
	if len(required.NodeSelectorTerms) > 0 {
		pod.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
	return pod
}
