package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/state"
)

// nodeWorld is the part of a world with nodes, and with the pods that kube-scheduler has bound to them.
type nodeWorld struct {
	nodes map[string]NodeSet
	pods  map[string]PodBound
	gangs bool // jobs have several pod sets
	// losses is set if most nodes are in use, and many fail and come back.
	losses bool
}

var nodeNames = []string{"a1", "a2", "a3", "b1", "b2"}

// newNodeWorld returns a world of two racks, whose queues have quota for most of them.
func newNodeWorld(t *rapid.T) *world {
	w := newWorld(t)
	w.nodes = &nodeWorld{nodes: map[string]NodeSet{}, pods: map[string]PodBound{}}
	for _, ev := range onNodes {
		w.apply(ev)
	}
	for _, name := range nodeNames {
		w.setNode(t, name)
	}
	for _, name := range queueNames {
		w.setNodeQueue(t, name)
	}
	return w
}

func (w *world) setNodeQueue(t *rapid.T, name string) {
	w.setQueue(t, name)
	q := w.queues[name]
	q.Quotas = quotasFor(rapid.Int64Range(0, 20).Draw(t, "larger quota of "+name), "default")
	q.OnDemand = rapid.IntRange(0, 4).Draw(t, name+" has nodes on demand") == 0
	w.queues[name] = q
	w.apply(q)
}

func (w *world) setNode(t *rapid.T, name string) {
	n := node(name, rapid.SampledFrom([]string{name[:1], name[:1], name[:1], "c"}).Draw(t, "rack of "+name),
		rapid.Int64Range(0, 6).Draw(t, "cpu of "+name))
	n.Allocatable[place.Pods] = rapid.Int64Range(1, 6).Draw(t, "pods of "+name)
	switch rapid.IntRange(0, 7).Draw(t, "state of "+name) {
	case 0:
		n.Cordoned = true
	case 1:
		n.Failed = true
	}
	w.nodes.nodes[name] = n
	w.apply(n)
}

// submitOnNodes creates a job with or without a topology request.
func (w *world) submitOnNodes(t *rapid.T) {
	name := fmt.Sprintf("j%03d", len(w.log))
	ev := job(name, rapid.SampledFrom(queueNames).Draw(t, "queue"), rapid.Int32Range(0, 5).Draw(t, "pods"),
		rapid.Int64Range(0, 4).Draw(t, "cpu"), rapid.Int32Range(-1, 1).Draw(t, "priority"), len(w.log))
	ps := &ev.PodSets[0]
	switch rapid.IntRange(0, 5).Draw(t, "kind of job") {
	case 0, 1:
		ps.Topology = &flavor.TopologyRequest{Level: rack, Mandatory: true}
	case 2:
		ps.Topology = &flavor.TopologyRequest{Level: rack}
	case 3:
		ps.Topology = &flavor.TopologyRequest{Slices: []place.Slice{{Level: rack, Size: 2}}}
	case 4:
		ps.Topology, ps.ExclusiveKey = &flavor.TopologyRequest{Level: rack, Mandatory: true}, rack
	}
	if rapid.IntRange(0, 3).Draw(t, "can start smaller") == 0 {
		ps.MinCount = min(1, ps.Count)
	}
	ps.Reclaimable = drawEnded(t, *ps)
	if w.nodes.gangs {
		w.addPodSets(t, &ev)
	}
	w.submit(t, ev)
}

// nodeStep makes one random change that worlds without nodes do not have.
func (w *world) nodeStep(t *rapid.T) {
	switch kind := rapid.IntRange(0, 19).Draw(t, "kind of event on nodes"); {
	case kind < 7:
		w.submitOnNodes(t)
	case kind < 9:
		w.setNode(t, rapid.SampledFrom(nodeNames).Draw(t, "changed node"))
	case kind < 10:
		name := rapid.SampledFrom(nodeNames).Draw(t, "deleted node")
		delete(w.nodes.nodes, name)
		w.apply(NodeDeleted{name})
	case kind < 15:
		w.bindOne(t)
	case kind < 17:
		w.bindForeign(t)
	case kind < 18:
		w.setNodeQueue(t, rapid.SampledFrom(queueNames).Draw(t, "reconfigured"))
	default:
		if names := slices.Sorted(maps.Keys(w.nodes.pods)); len(names) > 0 {
			w.endPod(rapid.SampledFrom(names).Draw(t, "pod that ends"))
		}
	}
}

func (w *world) endPod(name string) {
	w.apply(PodGone{w.nodes.pods[name].Key})
	delete(w.nodes.pods, name)
}

// usedOn returns what the existing pods use of a node.
func (n *nodeWorld) usedOn(name string) (cpu, pods int64) {
	for _, p := range n.pods {
		if p.Node == name {
			cpu, pods = cpu+p.Requests["cpu"], pods+1
		}
	}
	return cpu, pods
}

// bind binds a pod to a node as kube-scheduler does, if it fits.
func (w *world) bind(p PodBound) bool {
	n, ok := w.nodes.nodes[p.Node]
	cpu, pods := w.nodes.usedOn(p.Node)
	if !ok || n.Failed || n.Cordoned || cpu+p.Requests["cpu"] > n.Allocatable["cpu"] ||
		pods+1 > n.Allocatable[place.Pods] {
		return false
	}
	w.nodes.pods[p.Key.Name] = p
	w.apply(p)
	return true
}

// slots returns the places of admitted jobs whose pods do not exist yet.
func (w *world) slots() (out []PodBound) {
	for _, name := range w.names() {
		j := w.jobs[name]
		if j.Admission == nil || j.Evicted {
			continue
		}
		for i, ps := range j.PodSets {
			for _, p := range j.Admission.PodSets[i].Places {
				there := int32(0)
				for _, pod := range w.nodes.pods {
					if pod.Workload == j.Key && pod.PodSet == ps.Name && pod.Node == p.Node {
						there++
					}
				}
				if there < p.Count {
					ev := pod(name, len(w.log), p.Node, ps.PerPod["cpu"])
					ev.Workload, ev.PodSet, ev.ExclusiveKey = j.Key, ps.Name, ps.ExclusiveKey
					out = append(out, ev)
				}
			}
		}
	}
	return out
}

func (w *world) bindOne(t *rapid.T) {
	if slots := w.slots(); len(slots) > 0 {
		w.bind(rapid.SampledFrom(slots).Draw(t, "bound"))
	}
}

func (w *world) bindForeign(t *rapid.T) {
	w.bind(pod("", len(w.log), rapid.SampledFrom(nodeNames).Draw(t, "node of a foreign pod"),
		rapid.Int64Range(0, 3).Draw(t, "its cpu")))
}

// settlePods carries out the consequences of decisions: pods of workloads without quota end, as do those on lost nodes,
// and pods that have places are bound.
func (w *world) settlePods() {
	if w.nodes == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes.pods)) {
		p := w.nodes.pods[name]
		n, there := w.nodes.nodes[p.Node]
		j, ours := w.jobs[p.Workload.Name]
		if !there || n.Failed || p.Workload != (Key{}) && (!ours || j.Admission == nil || j.Evicted) {
			w.endPod(name)
		}
	}
	w.endExcessPods()
	for bound := true; bound; {
		bound = false
		for _, p := range w.slots() {
			bound = w.bind(p) || bound
		}
	}
}

// endExcessPods ends pods of shrunk jobs, beyond their places on each node.
func (w *world) endExcessPods() {
	there := map[string]int32{}
	for _, name := range slices.Sorted(maps.Keys(w.nodes.pods)) {
		p := w.nodes.pods[name]
		j, ours := w.jobs[p.Workload.Name]
		if !ours || p.PodSet != j.PodSets[0].Name || j.Admission == nil || j.PodSets[0].Elastic == 0 ||
			len(j.Admission.PodSets[0].Places) == 0 {
			continue
		}
		at := p.Workload.Name + "/" + p.Node
		there[at]++
		for _, has := range j.Admission.PodSets[0].Places {
			if has.Node == p.Node {
				there[at] -= has.Count
			}
		}
		if there[at] > 0 {
			w.endPod(name)
			there[at]--
		}
		for _, has := range j.Admission.PodSets[0].Places {
			if has.Node == p.Node {
				there[at] += has.Count
			}
		}
	}
}

// claims returns what existing pods, and held places without pods, use of each node, computed from scratch.
func (w *world) claims() (cpu, pods map[string]int64) {
	cpu, pods = map[string]int64{}, map[string]int64{}
	there := map[string]int32{}
	for _, p := range w.nodes.pods {
		cpu[p.Node] += p.Requests["cpu"]
		pods[p.Node]++
		if p.Workload != (Key{}) {
			there[p.Workload.Name+"/"+p.Node]++
		}
	}
	for _, j := range w.engine.workloads {
		if j.Held == nil {
			continue
		}
		for _, p := range j.Held.PodSets[0].Places {
			absent := int64(max(0, p.Count-there[j.Key.Name+"/"+p.Node]))
			cpu[p.Node] += absent * j.PodSets[0].PerPod["cpu"]
			pods[p.Node] += absent
		}
	}
	return cpu, pods
}

// checkOnNodes checks the property in worlds with nodes.
func checkOnNodes(t *testing.T, property func(t *rapid.T, w *world)) {
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, 3).Draw(t, "nodes are lost if 0") == 0 {
			property(t, newLossWorld(t))
			return
		}
		property(t, newNodeWorld(t))
	})
}

// TestNoNodeIsOverItsCapacityByADecision: an assigned place always fits on its node beside all existing and expected
// pods, and the node accepts pods.
func TestNoNodeIsOverItsCapacityByADecision(t *testing.T) {
	checkOnNodes(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			before := map[Key]*Admission{}
			for key, j := range w.engine.workloads {
				before[key] = j.Held
			}
			for _, d := range w.decide() {
				given := d.Admit
				if d.Replace != nil {
					given = d.Replace
				}
				if given == nil {
					continue
				}
				cpu, pods := w.claims()
				for _, p := range given.PodSets[0].Places {
					if was := before[d.Key]; was != nil && slices.ContainsFunc(was.PodSets[0].Places, func(had place.NodeCount) bool {
						return had.Node == p.Node && had.Count >= p.Count
					}) {
						continue // the pod had that place before
					}
					n, there := w.nodes.nodes[p.Node]
					asks := w.jobs[d.Key.Name].PodSets[0].PerPod["cpu"] > 0
					if !there || n.Failed || n.Cordoned || asks && cpu[p.Node] > n.Allocatable["cpu"] ||
						pods[p.Node] > n.Allocatable[place.Pods] {
						w.describe(t)
						t.Fatalf("%s was given %+v, and node %s has %d cpu and %d pods in use, beyond %+v", d.Key.Name, given, p.Node,
							cpu[p.Node], pods[p.Node], n)
					}
				}
			}
		}
	})
}

// TestGangsAreCompleteAndCloseTogether: a workload with places gets one for each of its pods, or none at all if nodes
// are provisioned on demand; and pods that must be in one rack are.
func TestGangsAreCompleteAndCloseTogether(t *testing.T) {
	checkOnNodes(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			for _, d := range w.decide() {
				given := d.Admit
				if d.Replace != nil {
					given = d.Replace
				}
				if given == nil {
					continue
				}
				ps := given.PodSets[0]
				sum, racks := int32(0), map[string]bool{}
				for _, p := range ps.Places {
					sum += p.Count
					racks[w.nodes.nodes[p.Node].Labels[rack]] = true
				}
				if sum != ps.Count && !(len(ps.Places) == 0 && w.queues[given.ClusterQueue].OnDemand) {
					t.Fatalf("%s has %d pods and places %v, want one place for each pod", d.Key, ps.Count, ps.Places)
				}
				asks := w.jobs[d.Key.Name].PodSets[0].Topology
				if asks != nil && asks.Mandatory && len(racks) > 1 && d.Admit != nil {
					t.Fatalf("%s has places in several racks: %v", d.Key, ps.Places)
				}
			}
		}
	})
}

// TestWorkloadThatWaitsForPlacesHasNone: once everything has settled, no workload waits for places that exist.
func TestWorkloadThatWaitsForPlacesHasNone(t *testing.T) {
	checkOnNodes(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			w.step(t)
		}
		w.settle(t)
		for _, q := range w.engine.queues {
			for _, c := range q.Classes {
				if c.Why.Code != "TopologyPlacementFailed" && c.Why.Code != "ExceedsNodes" ||
					q.Waits.Head() != nil && q.Waits.Head() != &c.Class {
					continue
				}
				job := w.engine.workloads[c.Head().Key]
				asks := w.engine.nodes.AsksOf(job.PodSets,
					[]Assignment{{PodSet: "main", Count: max(1, job.PodSets[0].Fewest()),
						Flavors: map[string]string{"cpu": "default"}}}, state.Avoidance{})
				if w.engine.nodes.Finder.Fits(asks, place.Now) {
					w.describe(t)
					t.Fatalf("%s waits although places for it exist: %s", job.Key, c.Why.Message())
				}
			}
		}
	})
}
