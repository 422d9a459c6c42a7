package find

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// drawPod draws a pod, with or without a workload, on a node that may not exist.
func drawPod(t *rapid.T, name string) place.Pod {
	p := place.Pod{Key: key(name), Node: fmt.Sprint("n", rapid.IntRange(0, 6).Draw(t, "pod's node")),
		Requests: map[string]int64{"cpu": rapid.Int64Range(0, 2).Draw(t, "pod's cpu"),
			"gpu": rapid.Int64Range(0, 1).Draw(t, "pod's gpu")}}
	if rapid.Bool().Draw(t, "of a workload") {
		p.Workload, p.PodSet = key(drawName(t, "pod's workload")),
			fmt.Sprint("set", rapid.IntRange(0, 1).Draw(t, "pod's set"))
	}
	if p.HasRank = rapid.Bool().Draw(t, "has a rank"); p.HasRank {
		p.Rank = rapid.Int32Range(0, 3).Draw(t, "rank")
	}
	switch rapid.IntRange(0, 9).Draw(t, "special") {
	case 0:
		p.ExclusiveKey = rapid.SampledFrom([]string{"rack", "block", place.Hostname}).Draw(t, "exclusive by")
	case 1:
		p.HostPorts = []place.HostPort{{Port: 80}}
	case 2:
		p.Resident = true
	case 3:
		p.Terminating = true
	}
	return p
}

func drawName(t *rapid.T, what string) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, what)
}

// drawHolding draws places anywhere, as the API server may have them: also too many, and on nodes that do not exist.
func drawHolding(t *rapid.T, w *world) *place.Holding {
	h := &place.Holding{}
	for _, a := range drawAsks(t, w, 6) {
		set := place.HeldPodSet{Ask: a}
		set.Ask.Unpinned = rapid.Bool().Draw(t, "loose")
		for left := a.Count; left > 0; {
			count := int32(rapid.IntRange(1, int(left)).Draw(t, "held"))
			left -= count
			name := fmt.Sprintf("n%d.local", rapid.IntRange(0, 6).Draw(t, "held on"))
			if !slices.ContainsFunc(set.Nodes, func(n place.NodeCount) bool { return n.Node == name }) {
				set.Nodes = append(set.Nodes, place.NodeCount{Node: name, Count: count})
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "some have ended") == 0 {
			set.Ended = int32(rapid.IntRange(0, int(a.Count)).Draw(t, "ended"))
		}
		h.PodSets = append(h.PodSets, set)
	}
	h.Nominated = rapid.IntRange(0, 3).Draw(t, "nominated") == 0
	h.Leaving = !h.Nominated && rapid.IntRange(0, 3).Draw(t, "leaving") == 0
	return h
}

// step draws a change and applies it to the map and to the world.
func step(t *rapid.T, m *finding, w *world) {
	switch rapid.IntRange(0, 10).Draw(t, "what happens") {
	case 0, 1:
		n := drawNode(t, fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "node")))
		w.nodes[n.Name] = n
		m.SetNode(n)
	case 2:
		name := fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "node"))
		delete(w.nodes, name)
		m.DeleteNode(name)
	case 3, 4:
		p := drawPod(t, fmt.Sprint("p", rapid.IntRange(0, 5).Draw(t, "pod")))
		delete(w.ended, p.Key)
		w.pods[p.Key] = p
		m.SetPod(p)
	case 5:
		name := key(fmt.Sprint("p", rapid.IntRange(0, 5).Draw(t, "pod")))
		p, there := w.pods[name]
		delete(w.pods, name)
		delete(w.ended, name)
		if there && p.Workload != (order.Key{}) && rapid.Bool().Draw(t, "ends well") {
			w.ended[name] = place.PodSetKey{Workload: p.Workload, PodSet: p.PodSet}
			m.EndPod(name, w.ended[name])
		} else {
			m.DeletePod(name)
		}
	case 6, 7:
		name, h := key(drawName(t, "workload")), drawHolding(t, w)
		w.holdings[name] = h
		m.Hold(name, h)
	case 8:
		name := key(drawName(t, "workload"))
		delete(w.holdings, name)
		m.Hold(name, nil)
	case 9:
		f := place.Flavor{Name: "f", Topology: "t"}
		if rapid.Bool().Draw(t, "labels") {
			f.NodeLabels = map[string]string{"pool": "x"}
		}
		w.flavors["f"] = f
		m.SetFlavor(f)
	case 10:
		m.forgetExclusive(0)
	}
}

// answers returns everything a map reports that does not depend on earlier queries.
func answers(m *finding, asks []place.Ask) map[string]any {
	out := map[string]any{}
	for on, name := range map[place.Ledger]string{place.Now: "now", place.Planned: "planned", place.Empty: "empty"} {
		placed, short := m.Find(asks, on)
		out[name] = placed
		if short != nil {
			out[name] = *short
		}
	}
	for slot := range m.Nodes.Slots() {
		if n := m.Nodes.At(int32(slot)); n != nil {
			out["headroom of "+n.Name] = headroom(m, int32(slot))
		}
	}
	var invalid []order.Key
	for _, name := range []string{"a", "b", "c"} {
		if m.hasInvalid(key(name)) {
			invalid = append(invalid, key(name))
		}
	}
	out["invalid"] = invalid
	for _, key := range invalid {
		repaired, ok := m.Repair(key)
		out["repair of "+key.String()] = fmt.Sprint(repaired, ok)
	}
	return out
}

// headroom returns how many units of each resource are free on the node in a slot, and whether a pod may be exclusive
// there, by ledger. What is free below zero is compared in the tests of package place.
func headroom(m *finding, slot int32) map[string]string {
	out := map[string]string{}
	for _, resource := range []string{"cpu", "gpu"} {
		for _, exclusive := range []string{"", "rack", "block", place.Hostname} {
			ask := place.Ask{Flavor: "f", PerPod: map[string]int64{resource: 1}, ExclusiveKey: exclusive}
			m.Exclusive.Know(exclusive)
			for _, on := range []place.Ledger{place.Now, place.Planned, place.Empty} {
				shape := m.Shapes.Of(&ask, ask.FilterKey(), m.Layouts.Of("f", exclusive), on)
				fits, why := m.Shapes.Fit(&shape, slot)
				out[fmt.Sprint(resource, on, exclusive)] = fmt.Sprint(fits, m.Shapes.RefusalText(why, &ask))
			}
		}
	}
	return out
}

func TestIncrementalUpdatesGiveTheSameMapAsAFreshOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := drawWorld(t, 4), newFinding()
		for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
			m.SetNode(w.nodes[name])
		}
		m.SetTopology(w.topologies["t"])
		m.SetFlavor(w.flavors["f"])
		asks := drawAsks(t, w, 6)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			step(t, m, w)
			if rapid.Bool().Draw(t, "ask") {
				if diff := cmp.Diff(answers(w.fresh(), asks), answers(m, asks)); diff != "" {
					t.Fatalf("answers (-fresh +incremental):\n%s\n%s%s", diff, w, say(asks))
				}
			}
		}
	})
}

func TestTryUndoesEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := drawWorld(t, 4), newFinding()
		for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
			m.SetNode(w.nodes[name])
		}
		m.SetTopology(w.topologies["t"])
		m.SetFlavor(w.flavors["f"])
		asks := drawAsks(t, w, 6)
		for range 8 {
			step(t, m, w)
		}
		m.TakeFreed()
		m.TakeInvalid()
		m.TakeReduced()
		before := answers(m, asks)
		change := func() { m.Hold(key(drawName(t, "workload")), drawHoldingOrNone(t, w)) }
		m.Try(func() {
			change()
			inner := answers(m, asks)
			m.Try(func() { change(); change() })
			if diff := cmp.Diff(inner, answers(m, asks)); diff != "" {
				t.Fatalf("answers after the inner trial (-before +after):\n%s", diff)
			}
			change()
		})
		if diff := cmp.Diff(before, answers(m, asks)); diff != "" {
			t.Fatalf("answers after the trial (-before +after):\n%s", diff)
		}
		if freed, invalid, reduced := m.TakeFreed(), m.TakeInvalid(),
			m.TakeReduced(); len(freed)+len(invalid)+len(reduced) > 0 {
			t.Fatalf("the trial was reported: freed %v, invalid %v, reduced %v", freed, invalid, reduced)
		}
	})
}

func drawHoldingOrNone(t *rapid.T, w *world) *place.Holding {
	if rapid.Bool().Draw(t, "none") {
		return nil
	}
	return drawHolding(t, w)
}

func TestFindOnAUsedClusterIsValidAndComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 4)
		m := w.fresh()
		for range 6 {
			step(t, m, w)
		}
		asks := drawAsks(t, w, 5)
		on := rapid.SampledFrom([]place.Ledger{place.Now, place.Planned}).Draw(t, "ledger")
		placed, short := m.Find(asks, on)
		switch {
		case mistakes(short):
			t.Skip()
		case short == nil:
			if wrong := w.invalid(asks, placed, on); wrong != "" {
				t.Fatalf("%s: %v\n%s%s", wrong, placed, w, say(asks))
			}
		case w.anyAssignment(asks, on):
			t.Fatalf("there are places, but: %s\n%s%s", short.Message(), w, say(asks))
		}
	})
}

func TestFitsAtAgreesWithFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 4)
		m := w.fresh()
		asks := drawAsks(t, w, 6)
		placed, short := m.Find(asks, place.Now)
		if short != nil {
			t.Skip()
		}
		if !m.FitsAt(asks, placed, place.Now) || !m.FitsAt(asks, placed, place.Planned) {
			t.Fatalf("FitsAt is false for places that were found: %v\n%s%s", placed, w, say(asks))
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			step(t, m, w)
		}
		before := answers(m, asks)
		for _, on := range []place.Ledger{place.Now, place.Planned} {
			has := m.FitsAt(asks, placed, on)
			if wrong := w.invalid(asks, placed, on); has && wrong != "" && w.apart(asks, placed) == "" {
				t.Fatalf("FitsAt is true, but %s: %v\n%s%s", wrong, placed, w, say(asks))
			} else if !has && wrong == "" {
				t.Fatalf("FitsAt is false: %v\n%s%s", placed, w, say(asks))
			}
		}
		if diff := cmp.Diff(before, answers(m, asks)); diff != "" {
			t.Fatalf("answers after FitsAt (-before +after):\n%s", diff)
		}
	})
}
