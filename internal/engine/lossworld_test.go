package engine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// newLossWorld returns a world with quota for all of its nodes, where jobs evict those of lower priority.
func newLossWorld(t *rapid.T) *world {
	w := newNodeWorld(t)
	w.nodes.losses = true
	for _, name := range queueNames {
		q := w.queues[name]
		q.Quotas, q.OnDemand, q.Checks = quotasFor(20, "default"), false, nil
		q.Preemption.WithinQueue =
			rapid.SampledFrom([]preempt.Rule{preempt.LowerPriority, preempt.LowerOrNewerEqualPriority}).Draw(t, name+" evicts")
		w.queues[name] = q
		w.apply(q)
	}
	for _, name := range nodeNames {
		w.returnNode(name)
	}
	return w
}

func (w *world) returnNode(name string) {
	n := node(name, name[:1], 4)
	w.nodes.nodes[name] = n
	w.apply(n)
}

// lossStep makes one random change: jobs come until the nodes are full, nodes fail or are deleted, and come back.
func (w *world) lossStep(t *rapid.T) {
	switch kind := rapid.IntRange(0, 19).Draw(t, "kind of event in a world of losses"); {
	case kind < 7:
		ev := job(fmt.Sprintf("j%03d", len(w.log)), rapid.SampledFrom(queueNames).Draw(t, "queue"),
			rapid.Int32Range(1, 3).Draw(t, "pods"), rapid.SampledFrom([]int64{1, 2, 4}).Draw(t, "cpu"),
			rapid.Int32Range(-1, 1).Draw(t, "priority"), len(w.log))
		switch rapid.IntRange(0, 5).Draw(t, "kind of job") {
		case 0:
			ev.PodSets[0].Topology = &flavor.TopologyRequest{Level: rack, Mandatory: true}
		case 1:
			ev.PodSets[0].Topology = &flavor.TopologyRequest{Slices: []place.Slice{{Level: rack, Size: 2}}}
		case 2:
			ev.PodSets[0].Bounds = []place.Bound{{Kind: place.Apart, Key: place.Hostname, Counts: []string{"main"}}}
		case 3:
			ev.PodSets[0].Topology, ev.PodSets[0].ExclusiveKey = &flavor.TopologyRequest{Level: rack, Mandatory: true}, rack
		}
		if rapid.IntRange(0, 3).Draw(t, "elastic if 0") == 0 && ev.PodSets[0].Topology == nil &&
			len(ev.PodSets[0].Bounds) == 0 {
			ev.PodSets[0].MinCount, ev.PodSets[0].Elastic = 1, 0.85
		}
		w.submit(t, ev)
	case kind < 11: // what was decided takes effect
		w.decide()
		for len(w.open) > 0 {
			w.write(0, rapid.SampledFrom([]answer{accepted, accepted, accepted, lost}).Draw(t, "answer"))
		}
		w.settlePods()
		for _, name := range w.names() {
			w.observe(name)
		}
	case kind < 15:
		name := rapid.SampledFrom(nodeNames).Draw(t, "lost node")
		if n, there := w.nodes.nodes[name]; there && rapid.Bool().Draw(t, "fails") {
			w.nodes.nodes[name] = failed(n)
			w.apply(failed(n))
			return
		}
		delete(w.nodes.nodes, name)
		w.apply(NodeDeleted{name})
	case kind < 18:
		w.returnNode(rapid.SampledFrom(nodeNames).Draw(t, "node that comes back"))
	case kind < 19 && rapid.Bool().Draw(t, "kube-scheduler refuses a pod"):
		if slots := w.slots(); len(slots) > 0 {
			at := rapid.SampledFrom(slots).Draw(t, "refused")
			w.apply(PodUnschedulable{Workload: at.Workload, Node: at.Node, Why: "no"})
		}
	case kind < 19:
		w.bindForeign(t)
	default:
		w.decide()
	}
}

// TestLossesAreReplacedByPreemption: the worlds of losses play what they are made for.
func TestLossesAreReplacedByPreemption(t *testing.T) {
	replaced, awaited := 0, 0
	playWorlds(t, 200)
	rapid.Check(t, func(t *rapid.T) {
		w := newLossWorld(t)
		for range 40 {
			w.lossStep(t)
			awaited += len(w.engine.nodes.Replacing)
			for _, d := range w.decide() {
				if d.Replace != nil && slices.ContainsFunc(w.decided,
					func(e Decision) bool { return e.Evict != nil && e.Evict.Preemptor == d.Key && e.Key != d.Key }) {
					replaced++
				}
			}
		}
	})
	if awaited < 20 || replaced < 5 {
		t.Errorf("workloads waited for replacements in %d steps, and %d got them, want more", awaited, replaced)
	}
}
