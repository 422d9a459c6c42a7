package find

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// gangOf places asks and creates some of their pods; it returns nil if there are no places.
func gangOf(t *rapid.T, m *finding, w *world, asks []place.Ask) *place.Holding {
	placed, short := m.Find(asks, place.Now)
	if short != nil {
		return nil
	}
	h := &place.Holding{}
	for i, a := range asks {
		h.PodSets = append(h.PodSets, place.HeldPodSet{Ask: a, Nodes: placed[i].Nodes})
	}
	w.holdings[key("gang")] = h
	m.Hold(key("gang"), h)
	for i, a := range asks {
		parts := rapid.SampledFrom(divisors(a.Count)).Draw(t, "parts")
		for rank, name := range expand(placed[i].Nodes) {
			if rapid.Bool().Draw(t, "started") {
				p := place.Pod{Key: key(fmt.Sprint("gang-", i, "-", rank)), Node: w.byHost(name).Name, Requests: a.PerPod,
					HostPorts: a.HostPorts,
					Workload:  key("gang"), PodSet: a.PodSet, ExclusiveKey: a.ExclusiveKey,
					Part: place.Part{Index: int32(rank) * parts / a.Count, Of: parts}}
				w.pods[p.Key] = p
				m.SetPod(p)
			}
		}
	}
	return h
}

// divisors returns the numbers of equal parts into which the pods can be divided.
func divisors(count int32) []int32 {
	out := []int32{1}
	for of := int32(2); of <= count; of++ {
		if count%of == 0 {
			out = append(out, of)
		}
	}
	return out
}

func expand(nodes []place.NodeCount) []string {
	var out []string
	for _, n := range nodes {
		for range n.Count {
			out = append(out, n.Node)
		}
	}
	return out
}

// harm draws a change of nodes that keeps their labels.
func harm(t *rapid.T, m *finding, w *world) {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(w.nodes))).Draw(t, "harmed")
	n := w.nodes[name]
	switch rapid.IntRange(0, 4).Draw(t, "harm") {
	case 0:
		n.Failed = true
	case 1:
		n.Cordoned = true
	case 2:
		delete(w.nodes, name)
		m.DeleteNode(name)
		return
	case 3:
		n.Allocatable = maps.Clone(n.Allocatable)
		n.Allocatable["gpu"]--
	case 4:
		p := drawPod(t, "foreign-"+name)
		p.Node, p.Workload = name, order.Key{}
		w.pods[p.Key] = p
		m.SetPod(p)
		return
	}
	w.nodes[name] = n
	m.SetNode(n)
}

func TestRepairIsValidAndComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 5)
		m := w.fresh()
		asks := drawAsks(t, w, 6)
		h := gangOf(t, m, w, asks)
		if h == nil {
			t.Skip()
		}
		for range rapid.IntRange(1, 3).Draw(t, "harms") {
			if len(w.nodes) > 0 {
				harm(t, m, w)
			}
		}
		r := m.repairOf(key("gang"), m.Holding(key("gang")))
		anybody, open := m.HasLivePod(key("gang")), r.ranks
		repaired, ok := m.Repair(key("gang"))
		if again, okAgain := m.Repair(key("gang")); ok != okAgain || fmt.Sprint(again) != fmt.Sprint(repaired) {
			t.Fatal("repair is not repeatable")
		}
		if ok {
			if wrong := w.badRepair(asks, open, repaired, anybody); wrong != "" {
				t.Fatalf("%s: %v\n%s%s", wrong, repaired, w, say(asks))
			}
			return
		}
		if w.repairable(asks, open) {
			t.Fatalf("there are places for %v\n%s%s", open, w, say(asks))
		}
	})
}

// TestRepairKeepsPlacesOfPodsOfOtherParts: a pod on a working node, at a place of its part, still has one
// there after a repair.
func TestRepairKeepsPlacesOfPodsOfOtherParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.topologies["t"], w.flavors["f"] = place.Topology{Name: "t", Levels: []string{"rack", place.Hostname}},
			place.Flavor{Name: "f", Topology: "t"}
		for i := range rapid.IntRange(2, 4).Draw(t, "nodes") {
			name := fmt.Sprint("n", i)
			w.setNode(place.Node{Name: name, Labels: map[string]string{"rack": "r", place.Hostname: name},
				Allocatable: map[string]int64{place.Pods: 8, "cpu": rapid.Int64Range(2, 6).Draw(t, "cpu"), "gpu": 0}})
		}
		m := w.fresh()
		asks := []place.Ask{{PodSet: "main", Flavor: "f", Count: rapid.Int32Range(2, 8).Draw(t, "count"),
			PerPod: map[string]int64{"cpu": 1}}}
		if gangOf(t, m, w, asks) == nil {
			t.Skip()
		}
		for range rapid.IntRange(1, 3).Draw(t, "harms") {
			if len(w.nodes) > 0 {
				harm(t, m, w)
			}
		}
		anybody := m.HasLivePod(key("gang"))
		repaired, ok := m.Repair(key("gang"))
		if !ok || !anybody {
			return
		}
		for i, a := range asks {
			type partOn struct {
				node string
				part int32
			}
			there, size, ranks := map[partOn]int{}, int32(0), expand(repaired.Assignments[i].Nodes)
			for _, p := range w.pods {
				if n, known := w.nodes[p.Node]; p.Workload == key("gang") && p.PodSet == a.PodSet && known && !n.Failed &&
					w.byHost(hostname(&n)) != nil {
					there[partOn{hostname(&n), p.Part.Index}]++
					size = int32(len(ranks)) / p.Part.Of
				}
			}
			if size == 0 {
				continue
			}
			for rank, name := range ranks {
				there[partOn{name, int32(rank) / size}]--
			}
			for at, left := range there {
				if left > 0 {
					t.Fatalf("%d pods of part %d on %s lost their places: %v\n%s%s", left, at.part, at.node, repaired, w, say(asks))
				}
			}
		}
	})
}

// badRepair returns what is wrong with a repair.
func (w *world) badRepair(asks []place.Ask, open [][]string, repaired RepairResult, keeps bool) string {
	if wrong := w.apart(asks, repaired.Assignments); wrong != "" {
		return wrong
	}
	moved := map[string]bool{}
	for i := range asks {
		for rank, name := range expand(repaired.Assignments[i].Nodes) {
			switch was := open[i][rank]; {
			case was == name:
			case was != "" && keeps:
				return "a pod with a valid place was moved"
			default:
				moved[name] = true
				if wrong := w.refused(&asks[i], *w.byHost(name)); wrong != "" {
					return wrong
				}
			}
		}
	}
	after := *w
	after.holdings = maps.Clone(w.holdings)
	h := place.Holding{}
	for i, a := range asks {
		h.PodSets = append(h.PodSets, place.HeldPodSet{Ask: a, Nodes: repaired.Assignments[i].Nodes})
	}
	after.holdings[key("gang")] = &h
	there := after.there(false)
	for name := range moved {
		n := w.byHost(name)
		used := map[string]int64{}
		var ports int
		for _, o := range there {
			if o.node == n.Name {
				used[place.Pods]++
				ports += len(o.ports)
				for r, amount := range o.requests {
					used[r] += amount
				}
			}
		}
		for r := range used {
			if used[r] > max(0, n.Allocatable[r]) && used[r] > 0 && w.usedByMoved(asks, open, repaired, name, r) {
				return fmt.Sprintf("node %s is over its room in %s", name, r)
			}
		}
		if ports > 1 && w.usedByMoved(asks, open, repaired, name, "port") {
			return "a port is used twice"
		}
	}
	return ""
}

// usedByMoved reports whether pods that moved to a node use any of a resource.
func (w *world) usedByMoved(asks []place.Ask, open [][]string, repaired RepairResult, name, resource string) bool {
	for i, a := range asks {
		for rank, to := range expand(repaired.Assignments[i].Nodes) {
			if to == name && open[i][rank] != name &&
				(resource == place.Pods || a.PerPod[resource] > 0 || resource == "port" && len(a.HostPorts) > 0) {
				return true
			}
		}
	}
	return false
}

// repairable tries every node for every open rank.
func (w *world) repairable(asks []place.Ask, open [][]string) bool {
	hosts := slices.Sorted(maps.Keys(w.nodes))
	for i, name := range hosts {
		n := w.nodes[name]
		hosts[i] = hostname(&n)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	ranks := make([][]string, len(open))
	for i := range open {
		ranks[i] = slices.Clone(open[i])
	}
	var try func(ask, rank int) bool
	try = func(ask, rank int) bool {
		if ask == len(asks) {
			var repaired RepairResult
			for i, a := range asks {
				repaired.Assignments = append(repaired.Assignments, place.Assignment{PodSet: a.PodSet, Nodes: place.Runs(ranks[i])})
			}
			return w.badRepair(asks, open, repaired, true) == "" && w.exclusiveStill(asks, ranks)
		}
		if rank == len(ranks[ask]) {
			return try(ask+1, 0)
		}
		if open[ask][rank] != "" {
			return try(ask, rank+1)
		}
		for _, name := range hosts {
			if w.byHost(name) == nil {
				continue
			}
			ranks[ask][rank] = name
			if try(ask, rank+1) {
				return true
			}
		}
		ranks[ask][rank] = ""
		return false
	}
	return try(0, 0)
}

// exclusiveStill reports whether no part shares an exclusive domain of another.
func (w *world) exclusiveStill(asks []place.Ask, ranks [][]string) bool {
	var all []onNode
	for i, a := range asks {
		for rank, name := range ranks[i] {
			all = append(all, onNode{node: w.byHost(name).Name, exclusive: a.ExclusiveKey, part: partOf(&a, rank)})
		}
	}
	for _, p := range w.pods {
		if p.Workload != key("gang") {
			all = append(all, onNode{node: p.Node, exclusive: w.exclusiveBy(&p), part: "foreign"})
		} else if n := w.nodes[p.Node]; n.Failed && p.ExclusiveKey != "" {
			all = append(all, onNode{node: p.Node, exclusive: p.ExclusiveKey, part: "lost"})
		}
	}
	for _, a := range all {
		for _, b := range all {
			if a.exclusive == "" || b.exclusive == "" || a.part == b.part || !w.known(a.node) || !w.known(b.node) {
				continue
			}
			for _, key := range []string{a.exclusive, b.exclusive} {
				if v := w.nodes[a.node].Labels[key]; v != "" && v == w.nodes[b.node].Labels[key] {
					return false
				}
			}
		}
	}
	return true
}

// TestRepairReunitesAGangWithoutPods: if labels change before any pod of a gang is there, the gang is
// repaired if there are other places, and the new ones satisfy its asks.
func TestRepairReunitesAGangWithoutPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 5)
		m := w.fresh()
		asks := drawAsks(t, w, 6)
		given, short := m.Find(asks, place.Now)
		if short != nil {
			t.Skip()
		}
		h := &place.Holding{}
		for i, a := range asks {
			h.PodSets = append(h.PodSets, place.HeldPodSet{Ask: a, Nodes: given[i].Nodes})
		}
		m.Hold(key("gang"), h)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			n := w.nodes[rapid.SampledFrom(slices.Sorted(maps.Keys(w.nodes))).Draw(t, "changed")]
			n.Labels = maps.Clone(n.Labels)
			n.Labels[rapid.SampledFrom([]string{"block", "rack", "pool"}).Draw(t,
				"label")] = rapid.SampledFrom([]string{"b1", "b2", "r11", "x"}).Draw(t, "value")
			w.nodes[n.Name] = n
			m.SetNode(n)
		}
		repaired, ok := m.Repair(key("gang"))
		switch {
		case !ok:
		case repaired.Moved > 0:
			if wrong := w.apart(asks, repaired.Assignments); wrong != "" {
				t.Fatalf("%s: %v\n%s%s", wrong, repaired, w, say(asks))
			}
		default:
			wrong := w.apart(asks, given)
			if wrong == "" {
				return
			}
			m.Hold(key("gang"), nil)
			if found, short := m.Find(asks, place.Now); short == nil {
				t.Fatalf("%s, but %v is valid\n%s%s", wrong, found, w, say(asks))
			}
		}
	})
}
