package place

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/engine/order"
)

// SetPod adds or updates a pod that is bound to a node.
func (m *Map) SetPod(set Pod) {
	m.holdings.forgetEnded(set.Key)
	takes, others := m.resources.charges(set.Requests)
	p := &pod{key: set.Key, node: m.Nodes.node(set.Node), takes: takes, others: others, ports: set.HostPorts,
		exclusive: set.ExclusiveKey,
		workload:  set.Workload, podSet: set.PodSet, part: set.Part, rank: -1, resident: set.Resident,
		terminating: set.Terminating}
	if set.HasRank {
		p.rank = set.Rank
	}
	old := m.pods.byKey[set.Key]
	if old != nil && old.equal(p) {
		return
	}
	if old != nil {
		m.holdings.removePod(old)
	}
	m.holdings.chargePod(p, 1)
	m.pods.add(p)
	if old != nil {
		m.holdings.podsChanged(old)
	}
	m.holdings.podsChanged(p)
}

// DeletePod removes a pod that is gone, or that has ended and will be replaced. It reports whether the pod
// was known.
func (m *Map) DeletePod(key order.Key) bool {
	remembered := m.holdings.forgetEnded(key)
	p := m.pods.byKey[key]
	if p == nil {
		return remembered
	}
	m.holdings.removePod(p)
	m.holdings.podsChanged(p)
	return true
}

// EndPod records that a pod has succeeded: it uses nothing any more and will not be replaced, whether or
// not its Workload says so yet. It reports whether this is new.
func (m *Map) EndPod(key order.Key, of PodSetKey) bool {
	if m.pods.ended[key] == of {
		return false
	}
	m.holdings.forgetEnded(key)
	m.pods.end(key, of)
	if p := m.pods.byKey[key]; p != nil {
		m.holdings.removePod(p)
		m.holdings.podsChanged(p)
	}
	return true
}

// PodNodes returns the nodes on which pods of the pod set are, sorted by name: only nodes that have the
// labels and have not failed.
func (m *Map) PodNodes(workload order.Key, podSet string, labels map[string]string) []NodeCount {
	c := m.pods.ofWorkload[workload]
	if c == nil {
		return nil
	}
	var out []NodeCount
	for at, count := range c.present {
		if n := m.Nodes.byName[at.node]; at.podSet == podSet && n != nil && n.host != nil && !n.Failed &&
			within(labels, n.Labels) {
			out = append(out, NodeCount{n.host.name, count})
		}
	}
	slices.SortFunc(out, func(a, b NodeCount) int { return strings.Compare(a.Node, b.Node) })
	return out
}

// PodsOn returns how many pods of the workload are on the node that places call host.
func (m *Map) PodsOn(workload order.Key, host string) (pods int32) {
	h, c := m.Nodes.hosts[host], m.pods.ofWorkload[workload]
	if h == nil || c == nil {
		return 0
	}
	for _, n := range h.nodes {
		for _, p := range n.pods {
			if p.workload == workload {
				pods++
			}
		}
	}
	return pods
}

// HasPods reports whether any pod of the workload is present.
func (m *Map) HasPods(workload order.Key) bool { return m.pods.ofWorkload[workload] != nil }

// HasLivePod reports whether a pod of the workload is on a node that exists and has not failed.
func (m *Map) HasLivePod(workload order.Key) bool {
	c := m.pods.ofWorkload[workload]
	if c == nil {
		return false
	}
	for _, p := range c.pods {
		if p.node.up() {
			return true
		}
	}
	return false
}

// Ended returns how many pods of a pod set have succeeded and are not deleted yet.
func (m *Map) Ended(of PodSetKey) int32 { return m.pods.endedOf[of] }

// IsLost reports whether there is no node of the name, or the node has lost its pods.
func (m *Map) IsLost(host string) bool {
	h := m.Nodes.hosts[host]
	return h == nil || len(h.nodes) == 0 || h.nodes[0].Failed
}

// LabelOf returns the value of a label of the node that places call host; known is false if there is no
// such node or it lacks the label.
func (m *Map) LabelOf(host, label string) (value string, known bool) {
	h := m.Nodes.hosts[host]
	if h == nil || len(h.nodes) == 0 {
		return "", false
	}
	value, known = h.nodes[0].Labels[label]
	return value, known
}

// learn charges what pods and workloads use of resources that a node has for the first time. This is rare, so all pods
// are looked at.
func (m *Map) learn(names []string) {
	if len(names) == 0 {
		return
	}
	m.catalog.renew()
	m.changes.happened()
	uses := func(perPod map[string]int64) bool {
		return slices.ContainsFunc(names, func(name string) bool { return perPod[name] > 0 })
	}
	for _, p := range m.pods.byKey {
		if uses(p.others) {
			m.holdings.chargePod(p, -1)
			all := maps.Clone(p.others)
			for _, a := range p.takes[1:] {
				all[m.resources.names[a.resource]] = a.value
			}
			p.takes, p.others = m.resources.charges(all)
			m.holdings.chargePod(p, 1)
			m.Usage.settle(p.node)
		}
	}
	var holders []order.Key
	for key, h := range m.holdings.holders {
		if slices.ContainsFunc(h.PodSets, func(set HeldPodSet) bool { return uses(set.Ask.PerPod) }) {
			holders = append(holders, key)
		}
	}
	for _, key := range holders {
		m.holdings.hold(key, &m.holdings.holders[key].Holding)
	}
}
