package place

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Refusal is a reason why no pod fits on a node, as an index into refusals.texts.
type Refusal uint16

// refusals assigns an index to each text.
type refusals struct {
	index map[string]Refusal
	texts []string
	// byResource holds the refusals for the lack of each resource.
	byResource []Refusal
}

const (
	// Accepted: the node is not refused.
	Accepted Refusal = iota
	// Foreign: the node does not belong to the flavor and is not counted.
	Foreign
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

// AvoidedFilter is the text for nodes that are avoided, NotReadyFilter the text for nodes that have failed.
const AvoidedFilter, NotReadyFilter = "refused by kube-scheduler", "not ready"

func newRefusals() refusals {
	r := refusals{index: map[string]Refusal{}}
	for _, text := range []string{"", "foreign", "other", "cordoned", NotReadyFilter, "hostname of another node",
		"topologyDomain", "nodeSelector", "affinity", "nodeName", AvoidedFilter, "hostPort", "exclusive placement",
		textOfLack("…")} {
		r.of(text)
	}
	return r
}

func (r *refusals) of(text string) Refusal {
	i, ok := r.index[text]
	switch {
	case ok:
		return i
	case len(r.texts) > 1<<15:
		return refusedOther
	}
	i = Refusal(len(r.texts))
	r.index[text] = i
	r.texts = append(r.texts, text)
	return i
}

// filters holds the filters that were used lately, by key.
type filters struct {
	catalog   *catalog
	nodes     *Nodes
	resources *resources
	byKey     map[string]*Filter
	refusals  refusals
}

func newFilters(catalog *catalog, nodes *Nodes, resources *resources) *filters {
	return &filters{catalog: catalog, nodes: nodes, resources: resources, byKey: map[string]*Filter{},
		refusals: newRefusals()}
}

// Filter decides which nodes pods of a shape may use, whatever capacity is left. Verdicts are cached by
// node and version.
type Filter struct {
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
	refusal Refusal
}

// RequiredAffinity returns the required node affinity, nil if there is none.
func (a *Ask) RequiredAffinity() *corev1.NodeSelector {
	if a.Affinity == nil {
		return nil
	}
	return a.Affinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// mostFilters bounds memory: a filter takes about 16 bytes per node.
const mostFilters = 128

// clear forgets all filters. Tallies keep their own references.
func (fs *filters) clear() { clear(fs.byKey) }

// of returns the filter of an ask, which it creates if needed.
func (fs *filters) of(a *Ask, key string) *Filter {
	if f := fs.byKey[key]; f != nil {
		return f
	}
	if len(fs.byKey) >= mostFilters {
		fs.clear()
	}
	f := &Filter{flavor: fs.catalog.flavors[a.Flavor], selector: a.NodeSelector, hasAffinity: a.RequiredAffinity() != nil,
		nodeName: a.NodeName}
	if f.hasAffinity {
		f.affinity = nodeaffinity.NewRequiredNodeAffinity(nil, &corev1.Affinity{NodeAffinity: a.Affinity})
	}
	f.label = a.JobLabel()
	f.tolerance = ToleranceOf(a.Tolerations, f.flavor.Tolerations)
	fs.byKey[key] = f
	return f
}

// cachedCheck returns the filter's verdict on the node in a slot at a version.
func (fs *filters) cachedCheck(f *Filter, slot int32, version uint64) Refusal {
	if int(slot) >= len(f.verdicts) {
		f.verdicts = append(f.verdicts, make([]verdict, len(fs.nodes.slots)-len(f.verdicts))...)
	}
	v := &f.verdicts[slot]
	if v.version != version {
		*v = verdict{version, fs.checkNode(f, fs.nodes.slots[slot])}
	}
	return v.refusal
}

// checkNode returns the filter's verdict on a node, which it does not cache.
func (fs *filters) checkNode(f *Filter, n *node) Refusal {
	if !within(f.flavor.NodeLabels, n.Labels) {
		return Foreign
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
			return fs.refusals.of("taint " + fmt.Sprintf("%q", t.ToString()))
		}
	}
	if !within(f.selector, n.Labels) {
		return refusedSelector
	}
	if f.label != nil && !slices.Contains(f.label.Values, n.Labels[f.label.Key]) {
		return fs.refusals.of(fmt.Sprintf("label %q", f.label.Key))
	}
	if f.hasAffinity && !f.matches(&n.Node) {
		return refusedAffinity
	}
	if f.nodeName != "" && n.Name != f.nodeName {
		return refusedNodeName
	}
	return Accepted
}

// keepsPodsOff reports whether the taint repels pods. The taint for cordoned nodes is left to Cordoned: a
// cordoned node is about to be drained, so even pods that tolerate everything are not placed there.
func keepsPodsOff(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoExecute ||
		t.Effect == corev1.TaintEffectNoSchedule && t.Key != corev1.TaintNodeUnschedulable
}

// refusedFor returns the refusal for a lack of the resource.
func (fs *filters) refusedFor(resource int32) Refusal {
	if resource == unknown {
		return refusedUnknown
	}
	for int(resource) >= len(fs.refusals.byResource) {
		next := len(fs.refusals.byResource)
		fs.refusals.byResource = append(fs.refusals.byResource, fs.refusals.of(textOfLack(fs.resources.names[next])))
	}
	return fs.refusals.byResource[resource]
}

// refusalText returns the text of a refusal of pods with these requests.
func (fs *filters) refusalText(why Refusal, perPod map[string]int64) string {
	if why == refusedUnknown {
		return textOfLack(fs.resources.unknownIn(perPod))
	}
	return fs.refusals.texts[why]
}

// textOfLack is the text of a refusal for a lack of the resource.
func textOfLack(resource string) string { return fmt.Sprintf("resource %q", resource) }

// ofResource reports whether a refusal is for the lack of a resource.
func (r *refusals) ofResource(why Refusal) bool {
	return why >= refusedUnknown && strings.HasPrefix(r.texts[why], "resource ")
}

// Selects reports whether the pods' selector and affinity, with the labels of their flavor, allow the node.
func (f *Filter) Selects(n *Node) bool {
	if !within(f.flavor.NodeLabels, n.Labels) || !within(f.selector, n.Labels) {
		return false
	}
	return !f.hasAffinity || f.matches(n)
}

// matches reports whether the pods' affinity allows the node.
func (f *Filter) matches(n *Node) bool {
	node := &corev1.Node{}
	node.Name, node.Labels = n.Name, n.Labels
	ok, err := f.affinity.Match(node)
	return ok && err == nil
}

// ToleratesAll reports whether the pods tolerate all taints of the node, and so that of a cordoned one.
func (f *Filter) ToleratesAll(n *Node) bool {
	return !slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !f.tolerance.Tolerates(&t)
	})
}

// JobLabel returns the label requirement by which unpinned pods choose nodes: the last expression of every
// term of their node affinity, nil if there is none. It stands for the node selector that each Job of a
// JobSet has for the nodes that users label for it; the job's author wrote no affinity.
func (a *Ask) JobLabel() *corev1.NodeSelectorRequirement {
	if !a.Unpinned || a.RequiredAffinity() == nil {
		return nil
	}
	var out *corev1.NodeSelectorRequirement
	for _, term := range a.RequiredAffinity().NodeSelectorTerms {
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

// DropJobLabel removes the requirement that JobLabel returns.
func (a *Ask) DropJobLabel() {
	a.Affinity = a.Affinity.DeepCopy()
	var others []corev1.NodeSelectorTerm
	for _, term := range a.RequiredAffinity().NodeSelectorTerms {
		term.MatchExpressions = term.MatchExpressions[:len(term.MatchExpressions)-1]
		if len(term.MatchExpressions)+len(term.MatchFields) > 0 {
			others = append(others, term)
		}
	}
	if a.RequiredAffinity().NodeSelectorTerms = others; len(others) == 0 {
		a.Affinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
}

// FilterKey identifies asks that share a filter.
func (a *Ask) FilterKey() string {
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
	if required := a.RequiredAffinity(); required != nil {
		text, err := json.Marshal(required)
		if err != nil { // a NodeSelector holds only strings
			panic(err)
		}
		k.text(string(text))
	}
	return string(k)
}
