package find

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
)

// relaxation is a change to an ask that makes it easier to place.
type relaxation struct {
	change func(a *place.Ask)
	// wholeGroup is set if the other asks of the group change as well.
	wholeGroup bool
	text       string
}

// mostTries bounds how many changes are tried: a gang may have hundreds of bounds, taints and resources.
const mostTries = 500

// relaxer tries changes to asks.
type relaxer struct {
	finder *Finder
	asks   []place.Ask
	left   int
}

// fit reports whether changed asks would fit now. It says no once it was asked too often.
func (r *relaxer) fit(asks []place.Ask) bool {
	r.left--
	return r.left >= 0 && r.finder.Fits(asks, place.Now)
}

// relax returns the smallest change to one of the asks with which all of them would fit now, as text. It tries, in this
// order: how near the pods must be to each other or how far apart, which nodes they may use, how many they are and how
// large they are.
func (f *Finder) relax(asks []place.Ask, found []AskDiagnosis) string {
	try := &relaxer{f, asks, mostTries}
	byName := map[string]*AskDiagnosis{}
	for i := range found {
		byName[found[i].PodSet] = &found[i]
	}
	kinds := []func(*place.Ask, *AskDiagnosis) []relaxation{f.relaxLevel, relaxParts, relaxBounds, f.relaxNodes}
	for _, kind := range kinds {
		for i := range asks {
			d := byName[asks[i].PodSet]
			if d == nil || !d.Together && d.Fits >= d.Count {
				continue
			}
			for _, r := range kind(&asks[i], d) {
				if try.fit(changed(asks, i, r)) {
					return fmt.Sprintf("%s %s", changedPodSets(asks, i, r), r.text)
				}
			}
		}
	}
	for _, size := range []func(int) string{try.fewerPods, try.smallerPods} {
		for i := range asks {
			if d := byName[asks[i].PodSet]; d == nil || !d.Together && d.Fits >= d.Count {
				continue
			}
			if text := size(i); text != "" {
				return fmt.Sprintf("pod set %q %s", asks[i].PodSet, text)
			}
		}
	}
	return ""
}

// changed returns the asks after a relaxation of ask i.
func changed(asks []place.Ask, i int, r relaxation) []place.Ask {
	out := slices.Clone(asks)
	for j := range out {
		if r.changes(asks, i, j) {
			r.change(&out[j])
		}
	}
	return out
}

// changes reports whether the relaxation of one ask changes the other, which may be the same.
func (r relaxation) changes(asks []place.Ask, relaxed, other int) bool {
	return other == relaxed || r.wholeGroup && asks[relaxed].Group != "" && asks[other].Group == asks[relaxed].Group
}

// changedPodSets names the pod sets that a relaxation of ask i changes.
func changedPodSets(asks []place.Ask, i int, r relaxation) string {
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

// relaxLevel widens the domain that all pods must be in.
func (f *Finder) relaxLevel(a *place.Ask, _ *AskDiagnosis) []relaxation {
	if a.Level == "" || !a.Mandatory {
		return nil
	}
	l := f.places.Layouts.Of(a.Flavor, a.ExclusiveKey)
	depth, _ := l.DepthOf(a.Level)
	var out []relaxation
	for depth--; depth > 0; depth-- {
		wider := l.LevelAt(depth)
		out = append(out, relaxation{func(a *place.Ask) { a.Level = wider }, true,
			fmt.Sprintf("within one %s rather than one %s", wider, a.Level)})
	}
	return append(out, relaxation{func(a *place.Ask) { a.Mandatory = false }, true,
		fmt.Sprintf("within one %s preferred, not required", a.Level)})
}

// relaxParts drops exclusive placement or slices.
func relaxParts(a *place.Ask, _ *AskDiagnosis) []relaxation {
	var out []relaxation
	if a.ExclusiveKey != "" {
		// An exclusive pod set must also be in one domain, so both are dropped.
		return append(out, relaxation{func(a *place.Ask) { a.ExclusiveKey, a.Slices = "", nil }, false,
			"without exclusive placement by " + a.ExclusiveKey})
	}
	if len(a.Slices) > 0 {
		out = append(out, relaxation{func(a *place.Ask) { a.Slices = nil }, false, "without slices"})
	}
	return out
}

// relaxBounds drops one bound between pods.
func relaxBounds(a *place.Ask, _ *AskDiagnosis) []relaxation {
	var out []relaxation
	for i := range a.Bounds {
		without := func(a *place.Ask) { a.Bounds = slices.Delete(slices.Clone(a.Bounds), i, i+1) }
		out = append(out, relaxation{without, false, "without " + a.Bounds[i].String()})
	}
	return out
}

// relaxNodes lets the pods use nodes that they are kept off, beginning with the taint on most nodes.
func (f *Finder) relaxNodes(a *place.Ask, d *AskDiagnosis) []relaxation {
	var out []relaxation
	excluded := slices.Clone(d.Excluded)
	slices.SortStableFunc(excluded, func(a, b Excluded) int { return cmp.Compare(b.Nodes, a.Nodes) })
	for _, e := range excluded {
		quoted, ok := strings.CutPrefix(e.Filter, "taint ")
		if !ok {
			continue
		}
		tolerated := tolerationOf(strings.Trim(quoted, `"`))
		out = append(out, relaxation{func(a *place.Ask) { a.Tolerations = append(slices.Clone(a.Tolerations), tolerated) },
			false, "tolerating " + e.Filter})
	}
	chooses := *a
	label := a.JobLabel()
	if label != nil {
		out = append(out, relaxation{(*place.Ask).DropJobLabel, false,
			"with more nodes labelled " + label.Key + " for its Job"})
		chooses.DropJobLabel()
	}
	if by := chosenBy(&chooses); len(by) > 0 {
		out = append(out, relaxation{func(a *place.Ask) {
			a.NodeSelector, a.Affinity, a.NodeName = a.OtherLabels, affinityTo(label), ""
		}, false, "without " + strings.Join(by, " and ")})
	}
	return out
}

// affinityTo returns the affinity to the label for a Job, which stays whatever the pods themselves ask for; nil for
// none.
func affinityTo(label *corev1.NodeSelectorRequirement) *corev1.NodeAffinity {
	if label == nil {
		return nil
	}
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{*label}}}}}
}

// tolerationOf returns the toleration of this taint alone, in the form of Taint.ToString: other nodes may have the same
// key with another value, and the pods must not be reported to fit on these nodes.
func tolerationOf(taint string) corev1.Toleration {
	of, effect, _ := strings.Cut(taint, ":")
	key, value, _ := strings.Cut(of, "=")
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: value,
		Effect: corev1.TaintEffect(effect)}
}

// chosenBy names the pod fields by which the ask selects nodes.
func chosenBy(a *place.Ask) []string {
	var out []string
	if len(a.NodeSelector) > len(a.OtherLabels) {
		out = append(out, "nodeSelector")
	}
	if a.RequiredAffinity() != nil {
		out = append(out, "node affinity")
	}
	if a.NodeName != "" {
		out = append(out, "nodeName")
	}
	return out
}

// fewerPods searches the largest number of pods of one pod set with which all asks fit.
func (r *relaxer) fewerPods(i int) string {
	count := r.asks[i].Count
	most := int32(sort.Search(int(count), func(less int) bool {
		return r.fit(changed(r.asks, i, relaxation{change: func(a *place.Ask) { a.Count = count - int32(less) }}))
	}))
	if most = count - most; most <= 0 || most == count || r.left < 0 {
		return ""
	}
	if most == 1 {
		return fmt.Sprintf("with 1 pod rather than %d", count)
	}
	return fmt.Sprintf("with %d pods rather than %d", most, count)
}

// smallerPods searches the largest request for one resource with which all asks fit.
func (r *relaxer) smallerPods(i int) string {
	for _, name := range slices.Sorted(maps.Keys(r.asks[i].PerPod)) {
		wanted := r.asks[i].PerPod[name]
		with := func(amount int64) []place.Ask {
			return changed(r.asks, i, relaxation{change: func(a *place.Ask) {
				a.PerPod = maps.Clone(a.PerPod)
				a.PerPod[name] = amount
			}})
		}
		if wanted <= 0 || !r.fit(with(0)) {
			continue
		}
		low, high := int64(0), wanted // low fits, high does not
		for high-low > 1 {
			if middle := low + (high-low)/2; r.fit(with(middle)) {
				low = middle
			} else {
				high = middle
			}
		}
		if low == 0 || r.left < 0 {
			continue // the nodes are full: a pod without any of it is another job, not a smaller one
		}
		number := func(amount int64) string { return quota.Number(quota.ToQuantity(corev1.ResourceName(name), amount)) }
		return fmt.Sprintf("with %s %s for each pod rather than %s", number(low), name, number(wanted))
	}
	return ""
}
