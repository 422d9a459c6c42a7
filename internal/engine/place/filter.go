package place

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// refusal is a reason why no pod fits on a node, as an index into refusals.texts.
type refusal uint16

// refusals assigns an index to each text.
type refusals struct {
	index map[string]refusal
	texts []string
	// byResource holds the refusals for the lack of each resource.
	byResource []refusal
}

const (
	// none: the node is not refused.
	none refusal = iota
	// foreign: the node does not belong to the flavor and is not counted.
	foreign
	refusedOther
	refusedCordoned
	refusedFailed
	refusedAmbiguousName
	refusedTopology
	refusedSelector
	refusedAffinity
	refusedNodeName
	refusedAvoided
	refusedPort
	refusedExclusive
	// refusedUnknown: no node has a resource that the pods ask for.
	refusedUnknown
)

// avoidedFilter is the text for nodes that are avoided, notReadyFilter for those that have failed.
const avoidedFilter, notReadyFilter = "refused by kube-scheduler", "not ready"

func newRefusals() refusals {
	r := refusals{index: map[string]refusal{}}
	for _, text := range []string{"", "foreign", "other", "cordoned", notReadyFilter, "hostname of another node", "topologyDomain", "nodeSelector", "affinity", "nodeName",
		avoidedFilter, "hostPort", "exclusive placement", textOfLack("…")} {
		r.of(text)
	}
	return r
}

func (r *refusals) of(text string) refusal {
	i, ok := r.index[text]
	switch {
	case ok:
		return i
	case len(r.texts) > 1<<15:
		return refusedOther
	}
	i = refusal(len(r.texts))
	r.index[text] = i
	r.texts = append(r.texts, text)
	return i
}

// ofResource reports whether a refusal is for the lack of a resource.
func (r *refusals) ofResource(why refusal) bool {
	return why >= refusedUnknown && strings.HasPrefix(r.texts[why], "resource ")
}

// filter decides which nodes pods of a shape may use, whatever capacity is left. Verdicts are cached by
// node and version.
type filter struct {
	flavor      Flavor
	selector    map[string]string
	affinity    nodeaffinity.RequiredNodeAffinity
	nodeName    string
	hasAffinity bool
	// label is the label that users set on the nodes for these pods, with its values; nil for other pods.
	label     *corev1.NodeSelectorRequirement
	tolerance Tolerance
	verdicts  []verdict
}

// verdict is the result for a node at a version.
type verdict struct {
	version uint64
	refusal refusal
}

// filterKey identifies asks that share a filter.
func (a *Ask) filterKey() string {
	var k keyText
	k.text(a.Flavor)
	if a.Unpinned {
		k.text("unpinned")
	}
	k.labels(a.NodeSelector)
	k.text(a.NodeName)
	for i := range a.Tolerations {
		t := &a.Tolerations[i]
		k.text(t.Key)
		k.text(string(t.Operator))
		k.text(t.Value)
		k.text(string(t.Effect))
	}
	if required := a.required(); required != nil {
		text, err := json.Marshal(required)
		if err != nil { // a NodeSelector holds only strings
			panic(err)
		}
		k.text(string(text))
	}
	return string(k)
}

// keyText is a key made of several texts. Each is preceded by its length, so that different lists never
// give the same key.
type keyText []byte

func (k *keyText) text(s string) {
	*k = strconv.AppendInt(*k, int64(len(s)), 10)
	*k = append(*k, ':')
	*k = append(*k, s...)
}

func (k *keyText) number(n int64) {
	*k = strconv.AppendInt(*k, n, 10)
	*k = append(*k, ';')
}

// few is the number of names that are sorted without an allocation.
const few = 8

func (k *keyText) labels(labels map[string]string) {
	k.number(int64(len(labels)))
	var names [few]string
	for _, name := range namesOf(labels, names[:0]) {
		k.text(name)
		k.text(labels[name])
	}
}

func (k *keyText) amounts(amounts map[string]int64) {
	k.number(int64(len(amounts)))
	var names [few]string
	for _, name := range namesOf(amounts, names[:0]) {
		k.text(name)
		k.number(amounts[name])
	}
}

// namesOf appends the keys of a map, sorted, to into.
func namesOf[V any](of map[string]V, into []string) []string {
	for name := range of {
		into = append(into, name)
	}
	slices.Sort(into)
	return into
}

// required returns the required node affinity, nil if there is none.
func (a *Ask) required() *corev1.NodeSelector {
	if a.Affinity == nil {
		return nil
	}
	return a.Affinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// filtersKept bounds memory: a filter takes about 16 bytes per node.
const filtersKept = 2 * talliesKept

// filter returns the filter of an ask, which it creates if needed.
func (m *Map) filter(a *Ask, key string) *filter {
	if f := m.filters[key]; f != nil {
		return f
	}
	if len(m.filters) >= filtersKept {
		clear(m.filters) // tallies keep their own references
	}
	f := &filter{flavor: m.flavors[a.Flavor], selector: a.NodeSelector, hasAffinity: a.required() != nil, nodeName: a.NodeName}
	if f.hasAffinity {
		f.affinity = nodeaffinity.NewRequiredNodeAffinity(nil, &corev1.Affinity{NodeAffinity: a.Affinity})
	}
	f.label = a.jobLabel()
	f.tolerance = ToleranceOf(a.Tolerations, f.flavor.Tolerations)
	m.filters[key] = f
	return f
}

// cachedCheck returns the filter's verdict on the node in a slot at a version.
func (m *Map) cachedCheck(f *filter, slot int32, version uint64) refusal {
	if int(slot) >= len(f.verdicts) {
		f.verdicts = append(f.verdicts, make([]verdict, len(m.slots)-len(f.verdicts))...)
	}
	v := &f.verdicts[slot]
	if v.version != version {
		*v = verdict{version, m.checkNode(f, m.slots[slot])}
	}
	return v.refusal
}

// checkNode is cachedCheck without the cache.
func (m *Map) checkNode(f *filter, n *node) refusal {
	if !within(f.flavor.NodeLabels, n.Labels) {
		return foreign
	}
	if len(n.host.nodes) > 1 {
		return refusedAmbiguousName
	}
	if n.Failed {
		return refusedFailed
	}
	if n.Labels[Hostname] == "" {
		return refusedTopology // whatever the levels are: pods are sent to their places by this label
	}
	for i := range n.Taints {
		t := &n.Taints[i]
		if keepsPodsOff(t) && !f.tolerance.Tolerates(t) {
			return m.refusals.of("taint " + fmt.Sprintf("%q", t.ToString()))
		}
	}
	if !within(f.selector, n.Labels) {
		return refusedSelector
	}
	if f.label != nil && !slices.Contains(f.label.Values, n.Labels[f.label.Key]) {
		return m.refusals.of(fmt.Sprintf("label %q", f.label.Key))
	}
	if f.hasAffinity {
		node := &corev1.Node{}
		node.Name, node.Labels = n.Name, n.Labels
		if ok, err := f.affinity.Match(node); !ok || err != nil {
			return refusedAffinity
		}
	}
	if f.nodeName != "" && n.Name != f.nodeName {
		return refusedNodeName
	}
	return none
}

// keepsPodsOff reports whether the taint repels pods. The taint for cordoned nodes is left to Cordoned: a
// cordoned node is about to be drained, so even pods that tolerate everything are not placed there.
func keepsPodsOff(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoExecute || t.Effect == corev1.TaintEffectNoSchedule && t.Key != corev1.TaintNodeUnschedulable
}
