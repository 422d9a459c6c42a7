package place

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/musterhq/muster/internal/engine/order"
)

// Map is where pods can run: nodes, what is on them, and the topologies over them.
// Make one with New; one goroutine may use it.
type Map struct {
	nodes      map[string]Node
	topologies map[string]Topology
	flavors    map[string]Flavor
	pods       map[order.Key]Pod
	holdings   map[order.Key]*Holding
	ailing     sets.Set[order.Key]
	freed      sets.Set[string]
}

// New is an empty map.
func New() *Map {
	return &Map{nodes: map[string]Node{}, topologies: map[string]Topology{}, flavors: map[string]Flavor{}, pods: map[order.Key]Pod{},
		holdings: map[order.Key]*Holding{}, ailing: sets.New[order.Key](), freed: sets.New[string]()}
}

// SetNode adds a node or says that it changed. What it is given is not changed
// afterwards.
func (m *Map) SetNode(n Node) { m.nodes[n.Name] = n; m.changed() }

// DeleteNode says that a node is gone, and the pods on it with it.
func (m *Map) DeleteNode(name string) { delete(m.nodes, name); m.changed() }

// SetTopology adds a topology or says that it changed.
func (m *Map) SetTopology(t Topology) { m.topologies[t.Name] = t; m.changed() }

// DeleteTopology says that a topology is gone.
func (m *Map) DeleteTopology(name string) { delete(m.topologies, name) }

// SetFlavor adds a flavor or says that it changed.
func (m *Map) SetFlavor(f Flavor) { m.flavors[f.Name] = f; m.changed() }

// DeleteFlavor says that a flavor is gone.
func (m *Map) DeleteFlavor(name string) { delete(m.flavors, name) }

// Places reports whether pods of the flavor are placed on nodes: it names a topology
// that exists.
func (m *Map) Places(flavor string) bool {
	_, ok := m.topologies[m.flavors[flavor].Topology]
	return ok
}

// SetPod says that a pod is bound to a node, or changed there.
func (m *Map) SetPod(p Pod) { m.pods[p.Key] = p; m.changed() }

// DeletePod says that a pod has ended or is gone.
func (m *Map) DeletePod(key order.Key) { delete(m.pods, key); m.changed() }

// Hold says what places a workload has now; nil for none.
func (m *Map) Hold(workload order.Key, h *Holding) {
	if h == nil {
		delete(m.holdings, workload)
	} else {
		m.holdings[workload] = h
	}
	m.changed()
}

// Try runs f and undoes every Hold in it. It may be nested.
func (m *Map) Try(f func()) {
	before := maps.Clone(m.holdings)
	f()
	m.holdings = before
}

// changed marks everything, for want of knowing better.
func (m *Map) changed() {
	for name := range m.flavors {
		if m.Places(name) {
			m.freed.Insert(name)
		}
	}
	for key := range m.holdings {
		m.ailing.Insert(key)
	}
}

// TakeFreed lists the flavors on whose nodes there may be more room than when it was
// last asked, in order.
func (m *Map) TakeFreed() []string {
	out := sets.List(m.freed)
	m.freed = sets.New[string]()
	return out
}

// TakeAiling lists the workloads that have places which must be mended, in order, and
// were not listed since something changed about them.
func (m *Map) TakeAiling() []order.Key {
	var out []order.Key
	for key := range m.ailing {
		if h := m.holdings[key]; h != nil && !h.Leaving && m.ails(h) {
			out = append(out, key)
		}
	}
	m.ailing = sets.New[order.Key]()
	slices.SortFunc(out, order.CompareKeys)
	return out
}

// ails reports whether a place is on a node that is gone or failed.
func (m *Map) ails(h *Holding) bool {
	hosts := m.hosts()
	for _, ps := range h.PodSets {
		for _, n := range ps.Nodes {
			if name, ok := hosts[n.Node]; !ok || m.nodes[name].Failed {
				return true
			}
		}
	}
	return false
}

// hosts is the node of each name in places.
func (m *Map) hosts() map[string]string {
	out := map[string]string{}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(m.nodes))) {
		out[host(m.nodes[name])] = name
	}
	return out
}

func host(n Node) string {
	if value := n.Labels[Hostname]; value != "" {
		return value
	}
	return n.Name
}

// eligible reports whether pods of the ask may run on the node at all.
func (m *Map) eligible(a *Ask, n Node) bool {
	f := m.flavors[a.Flavor]
	for _, level := range m.topologies[f.Topology].Levels {
		if _, ok := n.Labels[level]; !ok {
			return false
		}
	}
	for key, value := range f.NodeLabels {
		if n.Labels[key] != value {
			return false
		}
	}
	if n.Cordoned || n.Failed || slices.Contains(a.Avoid, host(n)) {
		return false
	}
	tolerations := slices.Concat(a.Tolerations, f.Tolerations)
	if _, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.Taints, tolerations, keepsPodsOff, true); found {
		return false
	}
	node := &corev1.Node{}
	node.Name, node.Labels = n.Name, n.Labels
	ok, err := nodeaffinity.NewRequiredNodeAffinity(a.NodeSelector, &corev1.Affinity{NodeAffinity: a.Affinity}).Match(node)
	return ok && err == nil
}

func keepsPodsOff(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// domain is the path of the node's domain at a level, and whether there is such a
// level.
func (m *Map) domain(flavor string, n Node, level string) (string, bool) {
	if level == Hostname {
		return "/" + host(n), true
	}
	var path strings.Builder
	for _, l := range m.topologies[m.flavors[flavor].Topology].Levels {
		path.WriteString("/" + n.Labels[l])
		if l == level {
			return path.String(), true
		}
	}
	return "", level == ""
}
