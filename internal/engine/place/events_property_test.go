package place

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/order"
)

// told holds the last values that a map was given.
type given struct {
	nodes    map[string]Node
	pods     map[order.Key]Pod
	ended    map[order.Key]PodSetKey
	holdings map[order.Key]*Holding
}

func named(name string) order.Key { return order.Key{Namespace: "ns", Name: name} }

func keysOf[V any](of map[order.Key]V) []order.Key {
	return slices.SortedFunc(maps.Keys(of), order.CompareKeys)
}

// fresh returns a new map that was given only the last values.
func (g *given) fresh() *Map {
	m := New()
	for _, key := range keysOf(g.holdings) {
		m.Hold(key, g.holdings[key])
	}
	for _, key := range keysOf(g.pods) {
		m.SetPod(g.pods[key])
	}
	for _, key := range keysOf(g.ended) {
		m.EndPod(key, g.ended[key])
	}
	for _, name := range slices.Sorted(maps.Keys(g.nodes)) {
		m.SetNode(g.nodes[name])
	}
	m.SetFlavor(Flavor{Name: "f", Topology: "t"})
	m.SetTopology(Topology{Name: "t", Levels: []string{"block", "rack", Hostname}})
	return m
}

// tell draws a change and applies it to the map.
func change(t *rapid.T, m *Map, g *given) {
	switch rapid.IntRange(0, 8).Draw(t, "what happens") {
	case 0, 1:
		n := drawNode(t)
		g.nodes[n.Name] = n
		m.SetNode(n)
	case 2:
		name := fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "node"))
		delete(g.nodes, name)
		m.DeleteNode(name)
	case 3, 4:
		p := drawPod(t)
		delete(g.ended, p.Key)
		g.pods[p.Key] = p
		m.SetPod(p)
	case 5:
		key := named(fmt.Sprint("p", rapid.IntRange(0, 5).Draw(t, "pod")))
		p, there := g.pods[key]
		delete(g.pods, key)
		delete(g.ended, key)
		if there && p.Workload != (order.Key{}) && rapid.Bool().Draw(t, "ends well") {
			g.ended[key] = PodSetKey{p.Workload, p.PodSet}
			m.EndPod(key, g.ended[key])
		} else {
			m.DeletePod(key)
		}
	case 6, 7:
		key, h := drawHolding(t)
		if g.holdings[key] = h; h == nil {
			delete(g.holdings, key)
		}
		m.Hold(key, h)
	case 8:
		m.Exclusive.Forget(0)
	}
}

func drawNode(t *rapid.T) Node {
	i := rapid.IntRange(0, 5).Draw(t, "node")
	n := Node{Name: fmt.Sprint("n", i),
		Labels:      map[string]string{"block": "x", "rack": fmt.Sprint(i / 2), Hostname: fmt.Sprintf("n%d.local", i)},
		Allocatable: map[string]int64{Pods: 4, "cpu": rapid.Int64Range(0, 4).Draw(t, "cpu")}}
	if gpus := rapid.Int64Range(-1, 3).Draw(t, "gpus"); gpus >= 0 {
		n.Allocatable["gpu"] = gpus
	}
	switch rapid.IntRange(0, 9).Draw(t, "special") {
	case 0:
		n.Cordoned = true
	case 1:
		n.Failed = true
	case 2:
		n.Labels[Hostname] = "n0.local"
	case 3:
		delete(n.Labels, "rack")
	}
	return n
}

func drawPod(t *rapid.T) Pod {
	p := Pod{Key: named(fmt.Sprint("p", rapid.IntRange(0, 5).Draw(t, "pod"))),
		Node: fmt.Sprint("n", rapid.IntRange(0, 6).Draw(t, "pod's node")),
		Requests: map[string]int64{"cpu": rapid.Int64Range(0, 2).Draw(t, "pod's cpu"),
			"gpu": rapid.Int64Range(0, 1).Draw(t, "pod's gpu")}}
	if rapid.Bool().Draw(t, "of a workload") {
		p.Workload, p.PodSet = named(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pod's workload")),
			fmt.Sprint("set", rapid.IntRange(0, 1).Draw(t, "pod's set"))
	}
	switch rapid.IntRange(0, 9).Draw(t, "special") {
	case 0, 1:
		p.ExclusiveKey = rapid.SampledFrom([]string{"rack", "block", Hostname}).Draw(t, "exclusive by")
	case 2:
		p.HostPorts = []HostPort{{Port: 80}}
	case 3:
		p.Resident = true
	case 4:
		p.Terminating = true
	}
	return p
}

// tellHolding draws the places of a workload, nil if it holds none any more.
func drawHolding(t *rapid.T) (order.Key, *Holding) {
	key := named(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "workload"))
	if rapid.IntRange(0, 3).Draw(t, "none") == 0 {
		return key, nil
	}
	h := &Holding{}
	for i := range rapid.IntRange(1, 2).Draw(t, "pod sets") {
		set := HeldPodSet{Ask: Ask{PodSet: fmt.Sprint("set", i), Flavor: "f",
			PerPod: map[string]int64{"cpu": 1, "gpu": rapid.Int64Range(0, 2).Draw(t, "each")}}}
		set.Ask.Unpinned = rapid.Bool().Draw(t, "loose")
		set.Ask.ExclusiveKey = rapid.SampledFrom([]string{"", "", "rack", Hostname}).Draw(t, "exclusive by")
		for range rapid.IntRange(0, 3).Draw(t, "hosts") {
			at := NodeCount{fmt.Sprintf("n%d.local", rapid.IntRange(0, 6).Draw(t, "held on")),
				rapid.Int32Range(1, 3).Draw(t, "held")}
			set.Nodes = append(set.Nodes, at)
			set.Ask.Count += at.Count
		}
		if rapid.IntRange(0, 3).Draw(t, "some have ended") == 0 {
			set.Ended = rapid.Int32Range(0, set.Ask.Count).Draw(t, "ended")
		}
		h.PodSets = append(h.PodSets, set)
	}
	h.Nominated = rapid.IntRange(0, 3).Draw(t, "nominated") == 0
	h.Leaving = !h.Nominated && rapid.IntRange(0, 3).Draw(t, "leaving") == 0
	return key, h
}

// stateOf returns the state of a map that does not depend on the order of what it was told.
func stateOf(m *Map) map[string]any {
	out := map[string]any{}
	for name, n := range m.Nodes.byName {
		if n.exists {
			out["headroom of "+name] = freeOf(m, n)
			out["exclusive domains around "+name] = n.inExclusive
		}
	}
	for _, key := range keysOf(m.holdings.holders) {
		out["invalid places of "+key.String()] = fmt.Sprint(m.InvalidPlaces(key))
	}
	return out
}

// freeOf returns the free amounts on a node by resource name. A map knows resources that nodes had once, which a fresh
// one does not; nothing of those is free.
func freeOf(m *Map, n *node) map[string]int64 {
	out := map[string]int64{}
	for i, name := range m.resources.names {
		for b := range book(books) {
			if free := m.Usage.free.of(b, int32(i), n.slot); free != 0 && n.capacity.allocatable[i] > 0 {
				out[fmt.Sprint(b, name)] = free
			}
		}
	}
	return out
}

func TestTheOrderOfEventsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &given{map[string]Node{}, map[order.Key]Pod{}, map[order.Key]PodSetKey{}, map[order.Key]*Holding{}}
		m := g.fresh()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			change(t, m, g)
			if diff := cmp.Diff(stateOf(g.fresh()), stateOf(m)); diff != "" {
				t.Fatalf("state (-fresh +incremental):\n%s", diff)
			}
		}
	})
}

func TestTryUndoesAllCharges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &given{map[string]Node{}, map[order.Key]Pod{}, map[order.Key]PodSetKey{}, map[order.Key]*Holding{}}
		m := g.fresh()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			change(t, m, g)
		}
		before := stateOf(m)
		m.Try(func() {
			for range 3 {
				m.Hold(drawHolding(t))
			}
		})
		if diff := cmp.Diff(before, stateOf(m)); diff != "" {
			t.Fatalf("state after the trial (-before +after):\n%s", diff)
		}
	})
}
