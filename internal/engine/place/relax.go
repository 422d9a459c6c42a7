package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/quota"
)

// relaxation is a change to what is asked.
type relaxation struct {
	change func(a *Ask)
	// also tells which other asks change with it: those of its group.
	wholeGroup bool
	text       string
}

// relax is the nearest change to one of the asks with which all would fit now: first
// how near its pods must be to each other, then which nodes they may be on, then how
// many they are, then how large.
func (m *Map) relax(asks []Ask, found []AskDiagnosis) string {
	byName := map[string]*AskDiagnosis{}
	for i := range found {
		byName[found[i].PodSet] = &found[i]
	}
	kinds := []func(*Ask, *AskDiagnosis) []relaxation{m.relaxLevel, relaxParts, m.relaxNodes}
	for _, kind := range kinds {
		for i := range asks {
			d := byName[asks[i].PodSet]
			if d == nil || !d.Together && d.Fits >= d.Count {
				continue
			}
			for _, r := range kind(&asks[i], d) {
				if m.Fits(changed(asks, i, r), Now) {
					return fmt.Sprintf("%s %s", changedPodSets(asks, i, r), r.text)
				}
			}
		}
	}
	for _, size := range []func([]Ask, int) string{m.fewerPods, m.smallerPods} {
		for i := range asks {
			if d := byName[asks[i].PodSet]; d == nil || !d.Together && d.Fits >= d.Count {
				continue
			}
			if text := size(asks, i); text != "" {
				return fmt.Sprintf("pod set %q %s", asks[i].PodSet, text)
			}
		}
	}
	return ""
}

// changed are the asks with a relaxation of one of them.
func changed(asks []Ask, i int, r relaxation) []Ask {
	out := slices.Clone(asks)
	for j := range out {
		if r.changes(asks, i, j) {
			r.change(&out[j])
		}
	}
	return out
}

// changes reports whether one ask changes with the relaxation of another, or is that one.
func (r relaxation) changes(asks []Ask, relaxed, other int) bool {
	return other == relaxed || r.wholeGroup && asks[relaxed].Group != "" && asks[other].Group == asks[relaxed].Group
}

// whose names the pod sets that a relaxation of one ask changes.
func changedPodSets(asks []Ask, i int, r relaxation) string {
	var names []string
	for j := range asks {
		if r.changes(asks, i, j) {
			names = append(names, strconv.Quote(asks[j].PodSet))
		}
	}
	if len(names) == 1 {
		return "pod set " + names[0]
	}
	return "pod sets " + strings.Join(names, ", ")
}

// nearness widens the domain that all pods must be in.
func (m *Map) relaxLevel(a *Ask, _ *AskDiagnosis) []relaxation {
	if a.Level == "" || !a.Mandatory {
		return nil
	}
	l := m.layoutOf(m.flavors[a.Flavor].Topology, a.ExclusiveKey)
	depth, _ := l.depthOf(a.Level)
	var out []relaxation
	for depth--; depth > 0; depth-- {
		wider := l.levelAt(depth)
		out = append(out, relaxation{func(a *Ask) { a.Level = wider }, true, fmt.Sprintf("within one %s rather than one %s", wider, a.Level)})
	}
	return append(out, relaxation{func(a *Ask) { a.Mandatory = false }, true, fmt.Sprintf("within one %s preferred, not required", a.Level)})
}

// parting takes away what parts of the pod set must have.
func relaxParts(a *Ask, _ *AskDiagnosis) []relaxation {
	var out []relaxation
	if a.ExclusiveKey != "" {
		// Who must be alone in its domain must be in one.
		return append(out, relaxation{func(a *Ask) { a.ExclusiveKey, a.Slices = "", nil }, false, "without exclusive placement by " + a.ExclusiveKey})
	}
	if len(a.Slices) > 0 {
		out = append(out, relaxation{func(a *Ask) { a.Slices = nil }, false, "without slices"})
	}
	return out
}

// where lets the pods run on nodes that are kept from them: the taint of most nodes
// first.
func (m *Map) relaxNodes(a *Ask, d *AskDiagnosis) []relaxation {
	var out []relaxation
	excluded := slices.Clone(d.Excluded)
	slices.SortStableFunc(excluded, func(a, b Excluded) int { return cmp.Compare(b.Nodes, a.Nodes) })
	for _, e := range excluded {
		quoted, ok := strings.CutPrefix(e.Filter, "taint ")
		if !ok {
			continue
		}
		key := strings.Trim(quoted, `"`)
		key = key[:strings.IndexAny(key+":", "=:")]
		tolerated := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
		out = append(out, relaxation{func(a *Ask) { a.Tolerations = append(slices.Clone(a.Tolerations), tolerated) }, false, "tolerating " + e.Filter})
	}
	chooses := *a
	if label := a.jobLabel(); label != nil {
		out = append(out, relaxation{(*Ask).dropJobLabel, false, "with more nodes labelled " + label.Key + " for it"})
		chooses.dropJobLabel()
	}
	if by := chooses.chosenBy(); len(by) > 0 {
		out = append(out, relaxation{func(a *Ask) { a.NodeSelector, a.Affinity, a.NodeName = nil, nil, "" }, false, "without " + strings.Join(by, " and ")})
	}
	return out
}

// chosenBy names the fields of the pods by which they choose nodes.
func (a *Ask) chosenBy() []string {
	var out []string
	if len(a.NodeSelector) > 0 {
		out = append(out, "nodeSelector")
	}
	if a.required() != nil {
		out = append(out, "node affinity")
	}
	if a.NodeName != "" {
		out = append(out, "nodeName")
	}
	return out
}

// fewer is the most pods of one pod set with which all fit.
func (m *Map) fewerPods(asks []Ask, i int) string {
	count := asks[i].Count
	most := int32(sort.Search(int(count), func(less int) bool {
		return m.Fits(changed(asks, i, relaxation{change: func(a *Ask) { a.Count = count - int32(less) }}), Now)
	}))
	if most = count - most; most <= 0 || most == count {
		return ""
	}
	if most == 1 {
		return fmt.Sprintf("with 1 pod rather than %d", count)
	}
	return fmt.Sprintf("with %d pods rather than %d", most, count)
}

// smaller is the most of one resource for each pod with which all fit.
func (m *Map) smallerPods(asks []Ask, i int) string {
	for _, name := range slices.Sorted(maps.Keys(asks[i].PerPod)) {
		wanted := asks[i].PerPod[name]
		with := func(amount int64) []Ask {
			return changed(asks, i, relaxation{change: func(a *Ask) {
				a.PerPod = maps.Clone(a.PerPod)
				a.PerPod[name] = amount
			}})
		}
		if wanted <= 0 || !m.Fits(with(0), Now) {
			continue
		}
		low, high := int64(0), wanted // fits, and does not
		for high-low > 1 {
			if middle := low + (high-low)/2; m.Fits(with(middle), Now) {
				low = middle
			} else {
				high = middle
			}
		}
		if low == 0 {
			return fmt.Sprintf("without %s", name)
		}
		number := func(amount int64) string { return quota.Number(quota.ToQuantity(corev1.ResourceName(name), amount)) }
		return fmt.Sprintf("with %s %s for each pod rather than %s", number(low), name, number(wanted))
	}
	return ""
}
