package find

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// world is a model of the state of a map. It checks assignments without the map's code.
type world struct {
	nodes      map[string]place.Node
	topologies map[string]place.Topology
	flavors    map[string]place.Flavor
	pods       map[order.Key]place.Pod
	ended      map[order.Key]place.PodSetKey
	holdings   map[order.Key]*place.Holding
}

func newWorld() *world {
	return &world{map[string]place.Node{}, map[string]place.Topology{}, map[string]place.Flavor{},
		map[order.Key]place.Pod{}, map[order.Key]place.PodSetKey{}, map[order.Key]*place.Holding{}}
}

// fresh returns a new map with the state of the world.
func (w *world) fresh() *finding {
	m := newFinding()
	for _, h := range sorted(w.holdings) {
		m.Hold(h.key, h.value)
	}
	for _, p := range sorted(w.pods) {
		m.SetPod(p.value)
	}
	for _, p := range sorted(w.ended) {
		m.EndPod(p.key, p.value)
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		m.SetNode(w.nodes[name])
	}
	for _, f := range w.flavors {
		m.SetFlavor(f)
	}
	for _, t := range w.topologies {
		m.SetTopology(t)
	}
	return m
}

type pair[V any] struct {
	key   order.Key
	value V
}

func sorted[V any](of map[order.Key]V) []pair[V] {
	var out []pair[V]
	for key, value := range of {
		out = append(out, pair[V]{key, value})
	}
	slices.SortFunc(out, func(a, b pair[V]) int { return order.CompareKeys(a.key, b.key) })
	return out
}

// byHost returns the node that a place means, nil if none or several have the name.
func (w *world) byHost(name string) *place.Node {
	var found *place.Node
	for _, n := range w.nodes {
		if hostname(&n) == name {
			if found != nil {
				return nil
			}
			found = &n
		}
	}
	return found
}

// onNode is something on a node: what a pod uses, and what of it is exclusive.
type onNode struct {
	node      string
	requests  map[string]int64
	ports     []place.HostPort
	exclusive string
	part      string
}

// exclusiveBy returns the label that a pod is exclusive by: the one that it names, if its workload holds places so.
func (w *world) exclusiveBy(p *place.Pod) string {
	h := w.holdings[p.Workload]
	if h != nil && !h.Nominated && slices.ContainsFunc(h.PodSets, func(set place.HeldPodSet) bool {
		return set.Ask.PodSet == p.PodSet && set.Ask.ExclusiveKey == p.ExclusiveKey
	}) {
		return p.ExclusiveKey
	}
	return ""
}

// there lists the pods and absent pods that a ledger counts.
func (w *world) there(inPlan bool) []onNode {
	var out []onNode
	present := map[string]int32{}
	for _, p := range sorted(w.pods) {
		present[fmt.Sprint(p.value.Workload, p.value.PodSet, p.value.Node)]++
		if h := w.holdings[p.value.Workload]; inPlan && h != nil && (h.Leaving || h.Nominated) {
			continue
		}
		out = append(out, onNode{p.value.Node, p.value.Requests, p.value.HostPorts, w.exclusiveBy(&p.value), "there"})
	}
	for _, h := range sorted(w.holdings) {
		if inPlan && h.value.Leaving || !inPlan && h.value.Nominated {
			continue
		}
		for _, set := range h.value.PodSets {
			var waiting []onNode
			vacant, counts := int32(0), map[string]int32{}
			for _, at := range set.Nodes {
				counts[at.Node] += at.Count
			}
			for _, at := range set.Nodes {
				at.Count = counts[at.Node]
				delete(counts, at.Node)
				absent, first := at.Count, ""
				for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
					if n := w.nodes[name]; hostname(&n) == at.Node && !h.value.Nominated {
						absent -= present[fmt.Sprint(h.key, set.Ask.PodSet, name)]
					}
					if n := w.nodes[name]; hostname(&n) == at.Node {
						first = cmp.Or(first, name)
					}
				}
				vacant += max(0, absent)
				for range absent {
					if first == "" {
						break
					}
					waiting = append(waiting, onNode{first, set.Ask.PerPod, set.Ask.HostPorts, set.Ask.ExclusiveKey, "there"})
				}
			}
			if h.value.Nominated || vacant > set.Ended+w.elsewhere(h.key, &set) {
				out = append(out, waiting...)
			}
		}
	}
	return out
}

// elsewhere returns how many live pods of an unpinned pod set are beyond its places on their nodes.
func (w *world) elsewhere(workload order.Key, set *place.HeldPodSet) int32 {
	beyond := map[string]int32{}
	for _, p := range w.pods {
		if n, ok := w.nodes[p.Node]; ok && !n.Failed && !p.Terminating && set.Ask.Unpinned && p.Workload == workload &&
			p.PodSet == set.Ask.PodSet {
			beyond[hostname(&n)]++
		}
	}
	for _, at := range set.Nodes {
		beyond[at.Node] -= at.Count
	}
	var out int32
	for _, count := range beyond {
		out += max(0, count)
	}
	return out
}

// invalid returns what is wrong with assignments, "" if nothing is.
func (w *world) invalid(asks []place.Ask, placed []place.Assignment, on place.Ledger) string {
	if len(placed) != len(asks) {
		return fmt.Sprintf("%d assignments for %d asks", len(placed), len(asks))
	}
	var mine []onNode
	for i, a := range asks {
		ranks, wrong := w.ranks(&a, placed[i])
		if wrong != "" {
			return wrong
		}
		for rank, n := range ranks {
			if wrong := w.refused(&a, n); wrong != "" {
				return wrong
			}
			mine = append(mine, onNode{n.Name, a.PerPod, a.HostPorts, a.ExclusiveKey, partOf(&a, rank)})
		}
	}
	if wrong := w.apart(asks, placed); wrong != "" {
		return wrong
	}
	books := [][]onNode{w.there(true)}
	if on == place.Now {
		books = append(books, w.there(false))
	}
	for _, there := range books {
		if wrong := w.overcommitted(there, mine); wrong != "" {
			return wrong
		}
	}
	return ""
}

// apart returns which pods are not in one domain although they must be, "" if none.
func (w *world) apart(asks []place.Ask, placed []place.Assignment) string {
	groups := map[string]string{}
	for i, a := range asks {
		if placed[i].PodSet != a.PodSet {
			return "assignments are not in the order of the asks"
		}
		ranks, wrong := w.ranks(&a, placed[i])
		if wrong != "" {
			return wrong
		}
		if a.Level != "" && a.Mandatory && len(ranks) > 0 {
			if d := w.oneDomain(&a, ranks, a.Level); d == "" {
				return a.PodSet + " is in more than one domain"
			} else if known := groups[a.Group]; a.Group != "" && known != "" && known != d {
				return "group " + a.Group + " is in more than one domain"
			} else {
				groups[a.Group] = d
			}
		}
		for _, s := range a.Slices {
			for from := 0; from < len(ranks); from += int(s.Size) {
				if w.oneDomain(&a, ranks[from:min(from+int(s.Size), len(ranks))], s.Level) == "" {
					return fmt.Sprintf("%s: a slice of %d by %s is in more than one domain", a.PodSet, s.Size, s.Level)
				}
			}
		}
		size := max(1, int(a.Count))
		if len(a.Slices) > 0 {
			size = int(a.Slices[0].Size)
		}
		for from := 0; a.ExclusiveKey != "" && from < len(ranks); from += size {
			for _, n := range ranks[from:min(from+size, len(ranks))] {
				if n.Labels[a.ExclusiveKey] != ranks[from].Labels[a.ExclusiveKey] || ranks[from].Labels[a.ExclusiveKey] == "" {
					return "an exclusive part is in more than one domain"
				}
			}
		}
	}
	return ""
}

func partOf(a *place.Ask, rank int) string {
	if len(a.Slices) > 0 {
		return fmt.Sprint(a.PodSet, rank/int(a.Slices[0].Size))
	}
	return a.PodSet
}

// ranks returns the node of each pod.
func (w *world) ranks(a *place.Ask, placed place.Assignment) ([]place.Node, string) {
	var out []place.Node
	for _, at := range placed.Nodes {
		n := w.byHost(at.Node)
		if n == nil {
			return nil, "a place on no node, or on two"
		}
		if at.Count <= 0 {
			return nil, "a place for no pod"
		}
		for range at.Count {
			out = append(out, *n)
		}
	}
	if len(out) != int(a.Count) {
		return nil, fmt.Sprintf("%d places for %d pods", len(out), a.Count)
	}
	return out, ""
}

// refused returns why no pod of the ask can use a node, whatever its free capacity.
func (w *world) refused(a *place.Ask, n place.Node) string {
	f := w.flavors[a.Flavor]
	if n.Cordoned || n.Failed || slices.Contains(a.Avoid, hostname(&n)) || !within(f.NodeLabels, n.Labels) ||
		!within(a.NodeSelector, n.Labels) {
		return "a place on a node that refuses the pods"
	}
	for _, level := range append(slices.Clone(w.topologies[f.Topology].Levels), place.Hostname) {
		if n.Labels[level] == "" {
			return "a place outside of the topology"
		}
	}
	for _, taint := range n.Taints {
		if keepsPodsOff(&taint) && len(a.Tolerations) == 0 {
			return "a place on a tainted node"
		}
	}
	return ""
}

// oneDomain returns the domain of a level that contains all nodes, "" if there are several.
func (w *world) oneDomain(a *place.Ask, nodes []place.Node, level string) string {
	path := func(n place.Node) string {
		if level == place.Hostname {
			return "node " + n.Name
		}
		out := ""
		for _, l := range w.topologies[w.flavors[a.Flavor].Topology].Levels {
			out += "/" + n.Labels[l]
			if l == level {
				return out
			}
		}
		return n.Labels[level] // the label of exclusive placement
	}
	for _, n := range nodes {
		if path(n) != path(nodes[0]) {
			return ""
		}
	}
	return path(nodes[0])
}

// overcommitted returns where a node has too little capacity for mine. Existing pods may already use too much.
func (w *world) overcommitted(there, mine []onNode) string {
	all := slices.Concat(there, mine)
	for _, m := range mine {
		n := w.nodes[m.node]
		used := map[string]int64{}
		for _, o := range all {
			if o.node != m.node {
				continue
			}
			used[place.Pods]++
			for r, amount := range o.requests {
				used[r] += amount
			}
		}
		for r, amount := range m.requests {
			if amount > 0 && used[r] > n.Allocatable[r] {
				return fmt.Sprintf("node %s is over its room in %s", m.node, r)
			}
		}
		if used[place.Pods] > n.Allocatable[place.Pods] {
			return "too many pods"
		}
	}
	for i, m := range mine {
		for j, o := range all {
			if j == len(there)+i {
				continue
			}
			if m.node == o.node && slices.ContainsFunc(m.ports, func(p place.HostPort) bool {
				return slices.ContainsFunc(o.ports, func(other place.HostPort) bool { return conflict(p, other) })
			}) {
				return "a port is used twice"
			}
			if m.exclusive == "" || o.exclusive == "" || m.part == o.part {
				continue
			}
			a, b := w.nodes[m.node], w.nodes[o.node]
			for _, key := range []string{m.exclusive, o.exclusive} {
				if v := a.Labels[key]; v != "" && v == b.Labels[key] && w.known(o.node) {
					return "an exclusive domain is shared"
				}
			}
		}
	}
	return ""
}

func (w *world) known(node string) bool { _, ok := w.nodes[node]; return ok }

// anyAssignment searches for any valid assignment by trying every node for every rank.
func (w *world) anyAssignment(asks []place.Ask, on place.Ledger) bool {
	var hosts []string
	for _, n := range w.nodes {
		hosts = append(hosts, hostname(&n))
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	placed := make([]place.Assignment, len(asks))
	for i := range asks {
		placed[i].PodSet = asks[i].PodSet
	}
	var try func(ask, rank, from int) bool
	try = func(ask, rank, from int) bool {
		if ask == len(asks) {
			return w.invalid(asks, placed, on) == "" && w.unbound(asks, placed) == ""
		}
		a := &asks[ask]
		if rank == int(a.Count) {
			// More pods do not make an invalid assignment valid.
			return w.invalid(asks[:ask+1], placed[:ask+1], on) == "" && try(ask+1, 0, 0)
		}
		if len(a.Slices) == 0 && a.ExclusiveKey == "" {
			from = max(from, 0) // ranks are alike: nodes in order
		} else {
			from = 0
		}
		for i := from; i < len(hosts); i++ {
			before := placed[ask].Nodes
			placed[ask].Nodes = append(slices.Clone(before), place.NodeCount{Node: hosts[i], Count: 1})
			if try(ask, rank+1, i) {
				return true
			}
			placed[ask].Nodes = before
		}
		return false
	}
	return try(0, 0, 0)
}

// conflict reports whether the two ports cannot be used on one node.
func conflict(h, other place.HostPort) bool {
	protocol := func(p place.HostPort) string { return cmp.Or(string(p.Protocol), "TCP") }
	all := func(p place.HostPort) bool { return p.IP == "" || p.IP == "0.0.0.0" || p.IP == "::" }
	return h.Port == other.Port && protocol(h) == protocol(other) && (all(h) || all(other) || h.IP == other.IP)
}

// hostname returns the node's name in places.
func hostname(n *place.Node) string { return cmp.Or(n.Labels[place.Hostname], n.Name) }

// within reports whether others contains all of the labels.
func within(labels, others map[string]string) bool {
	for key, value := range labels {
		if have, ok := others[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// keepsPodsOff reports whether the taint repels pods. That of cordoned nodes is left to Cordoned.
func keepsPodsOff(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoExecute ||
		t.Effect == corev1.TaintEffectNoSchedule && t.Key != corev1.TaintNodeUnschedulable
}
