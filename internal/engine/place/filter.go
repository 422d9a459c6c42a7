package place

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// refusal is why no pod fits on a node, by its index among those that have been
// given.
type refusal uint16

// refusals gives each text an index.
type refusals struct {
	index map[string]refusal
	texts []string
	// byResource say that there is none of a resource.
	byResource []refusal
}

const (
	// none: it does not refuse.
	none refusal = iota
	// foreign: the node is not of the flavor, and so not counted.
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
)

// avoidedFilter is what takes nodes away that are avoided.
const avoidedFilter = "refused by kube-scheduler"

func newRefusals() refusals {
	r := refusals{index: map[string]refusal{}}
	for _, text := range []string{"", "foreign", "other", "cordoned", "not ready", "hostname of another node", "topologyDomain", "nodeSelector", "affinity", "nodeName",
		avoidedFilter, "hostPort", "exclusive placement"} {
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

// ofResource tells that a node has too little of something.
func (r *refusals) ofResource(why refusal) bool {
	return why > refusedExclusive && strings.HasPrefix(r.texts[why], "resource ")
}

// filter is what decides which nodes pods of a kind may run on, whatever room there
// is; verdicts are kept by node for as long as nothing changes that they depend on.
type filter struct {
	flavor      Flavor
	selector    map[string]string
	affinity    nodeaffinity.RequiredNodeAffinity
	nodeName    string
	hasAffinity bool
	// label is the one that people give to nodes for these pods, and its values; nil where they choose nodes themselves.
	label       *corev1.NodeSelectorRequirement
	tolerations []corev1.Toleration
	verdicts    []verdict
}

// verdict is of the node as it was at a version.
type verdict struct {
	version uint64
	refusal refusal
}

// filterKey tells which asks share a filter.
func (a *Ask) filterKey() string {
	var k keyText
	k.text(a.Flavor)
	if a.Unpinned {
		k.text("loose")
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
		if err != nil { // it holds nothing but strings
			panic(err)
		}
		k.text(string(text))
	}
	return string(k)
}

// keyText is a key of several texts: each with its length, so that no two lists of
// texts are one key.
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

// few is how many names are sorted without memory of their own.
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

// namesOf are the keys of a map in order.
func namesOf[V any](of map[string]V, into []string) []string {
	for name := range of {
		into = append(into, name)
	}
	slices.Sort(into)
	return into
}

func (a *Ask) required() *corev1.NodeSelector {
	if a.Affinity == nil {
		return nil
	}
	return a.Affinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// filtersKept bounds memory: one takes some 16 bytes a node.
const filtersKept = 2 * talliesKept

// filter finds or makes that of an ask.
func (m *Map) filter(a *Ask, key string) *filter {
	if f := m.filters[key]; f != nil {
		return f
	}
	if len(m.filters) >= filtersKept {
		clear(m.filters) // tallies keep theirs
	}
	f := &filter{flavor: m.flavors[a.Flavor], selector: a.NodeSelector, hasAffinity: a.required() != nil, nodeName: a.NodeName}
	if f.hasAffinity {
		f.affinity = nodeaffinity.NewRequiredNodeAffinity(nil, &corev1.Affinity{NodeAffinity: a.Affinity})
	}
	f.label = a.jobLabel()
	f.tolerations = slices.Concat(a.Tolerations, f.flavor.Tolerations)
	m.filters[key] = f
	return f
}

// judge is the filter's verdict on the node in a slot, as it is at a version.
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

// look is judge without memory.
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
	for i := range n.Taints {
		t := &n.Taints[i]
		if keepsPodsOff(t) && !corev1helpers.TolerationsTolerateTaint(klog.Background(), f.tolerations, t, true) {
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

// keepsPodsOff is false for the taint that says Cordoned over again. A pod that
// tolerates everything is kept off a cordoned node all the same: it is about to go.
func keepsPodsOff(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoExecute || t.Effect == corev1.TaintEffectNoSchedule && t.Key != corev1.TaintNodeUnschedulable
}
