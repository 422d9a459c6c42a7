package find

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// drawBounds gives the asks a few bounds between each other, and sometimes pods that keep their places.
func drawBounds(t *rapid.T, w *world, asks []place.Ask) {
	var kept []place.Assignment
	if rapid.IntRange(0, 2).Draw(t, "kept?") == 0 {
		for i := range asks {
			at := place.NodeCount{Node: fmt.Sprintf("n%d.local", rapid.IntRange(0, 3).Draw(t, "kept on")),
				Count: int32(rapid.IntRange(0, 2).Draw(t, "kept pods"))}
			kept = append(kept, place.Assignment{PodSet: asks[i].PodSet, Nodes: []place.NodeCount{at}})
		}
	}
	var limits []place.NodeCount
	if rapid.IntRange(0, 3).Draw(t, "limit?") == 0 {
		limits = []place.NodeCount{{Node: "n1.local", Count: int32(rapid.IntRange(1, 2).Draw(t, "limit"))}}
	}
	for i := range asks {
		a := &asks[i]
		a.Kept, a.Limits = kept, limits
		for range rapid.IntRange(0, 2).Draw(t, "bounds") {
			b := place.Bound{
				Kind: rapid.SampledFrom([]place.BoundKind{place.Apart, place.Together, place.Even}).Draw(t, "kind"),
				Key: rapid.SampledFrom([]string{place.Hostname, place.Hostname, "rack", "block", "pool",
					corev1.LabelTopologyZone}).Draw(t, "key"),
			}
			for j := range asks {
				if own := j == i; own && b.Kind == place.Even || rapid.IntRange(0, 2).Draw(t, "counts?") > 0 {
					b.Counts = append(b.Counts, asks[j].PodSet)
				}
			}
			if b.Kind == place.Even {
				b.MaxSkew, b.MinDomains = int32(rapid.IntRange(1, 2).Draw(t, "skew")),
					int32(rapid.IntRange(0, 2).Draw(t, "min domains"))
				b.AllNodes, b.Untainted = rapid.Bool().Draw(t, "all nodes"), rapid.Bool().Draw(t, "untainted")
			}
			a.Bounds = append(a.Bounds, b)
		}
	}
}

// TestFindKeepsBoundsAndIsComplete compares gangs whose pods bound each other with every possible placement.
func TestFindKeepsBoundsAndIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 5)
		asks := drawAsks(t, w, 5)
		drawBounds(t, w, asks)
		placed, short := w.fresh().Find(asks, place.Now)
		if mistakes(short) {
			t.Skip()
		}
		if short == nil {
			if wrong := w.invalid(asks, placed, place.Now) + w.unbound(asks, placed); wrong != "" {
				t.Fatalf("%s: %v\n%s%s", wrong, placed, w, say(asks))
			}
			return
		}
		if w.anyAssignment(asks, place.Now) {
			t.Fatalf("there are places, but: %s\n%s%s", short.Message(), w, say(asks))
		}
	})
}

// boundPod is a pod of a pod set on a node, for the model of bounds.
type boundPod struct {
	podSet string
	node   place.Node
	kept   bool
}

// unbound returns which bound the assignments break, "" if none.
func (w *world) unbound(asks []place.Ask, placed []place.Assignment) string {
	var pods []boundPod
	add := func(from []place.Assignment, kept bool) {
		for _, a := range from {
			for _, at := range a.Nodes {
				for range at.Count {
					if n := w.byHost(at.Node); n != nil || kept && w.firstOn(at.Node, &n) {
						pods = append(pods, boundPod{a.PodSet, *n, kept})
					}
				}
			}
		}
	}
	if len(asks) > 0 {
		add(asks[0].Kept, true)
	}
	add(placed, false)
	for i := range asks {
		for _, b := range asks[i].Bounds {
			if len(placed[i].Nodes) > 0 && w.breaks(&asks[i], &b, pods) {
				return fmt.Sprintf("%s: %s is broken", asks[i].PodSet, b.String())
			}
		}
		for _, limit := range asks[i].Limits {
			total, fresh := 0, 0
			for _, p := range pods {
				if hostname(&p.node) == limit.Node {
					total++
					if !p.kept {
						fresh++
					}
				}
			}
			if fresh > 0 && total > int(limit.Count) {
				return "more pods on a node than its limit"
			}
		}
	}
	return ""
}

// firstOn gives the first node with a name in places that several nodes have: pods that keep their places there count
// by the labels of this node.
func (w *world) firstOn(host string, n **place.Node) bool {
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if node := w.nodes[name]; hostname(&node) == host {
			*n = &node
			return true
		}
	}
	return false
}

// breaks reports whether any pod of the ask breaks the bound.
func (w *world) breaks(a *place.Ask, b *place.Bound, pods []boundPod) bool {
	counts := func(p boundPod) bool {
		for _, name := range b.Counts {
			if name == p.podSet {
				return true
			}
		}
		return false
	}
	inDomain := func(value string, is func(p boundPod) bool) (n int) {
		for _, p := range pods {
			if v, has := p.node.Labels[b.Key]; has && v == value && is(p) {
				n++
			}
		}
		return n
	}
	values := map[string]bool{}
	for _, p := range pods {
		if v, has := p.node.Labels[b.Key]; has && (counts(p) || p.podSet == a.PodSet) {
			values[v] = true
		}
	}
	self := counts(boundPod{podSet: a.PodSet})
	for _, p := range pods {
		value, has := p.node.Labels[b.Key]
		switch {
		case p.podSet != a.PodSet:
			continue
		case b.Kind == place.Apart && has:
			others := inDomain(value, counts)
			if self {
				others--
			}
			if others > 0 {
				return true
			}
		case b.Kind == place.Together && !p.kept:
			others := inDomain(value, func(p boundPod) bool { return counts(p) && (p.kept || p.podSet != a.PodSet) })
			if !has || others == 0 && !(self && len(values) == 1) {
				return true
			}
		case b.Kind == place.Even && !p.kept:
			if !has || inDomain(value, counts)-
				w.fewest(a, b, func(v string) int { return inDomain(v, counts) }) > int(b.MaxSkew) {
				return true
			}
		}
	}
	return false
}

// fewest returns how many pods count in the eligible domain that has the fewest.
func (w *world) fewest(a *place.Ask, b *place.Bound, count func(value string) int) int {
	least := 1 << 30
	for _, n := range w.nodes {
		eligible := true
		for _, other := range a.Bounds {
			if _, has := n.Labels[other.Key]; other.Kind == place.Even && !has {
				eligible = false
			}
		}
		if !b.AllNodes && !within(a.NodeSelector, n.Labels) {
			eligible = false
		}
		for _, taint := range n.Taints {
			if b.Untainted && taint.Effect != corev1.TaintEffectPreferNoSchedule && len(a.Tolerations) == 0 {
				eligible = false
			}
		}
		if eligible {
			least = min(least, count(n.Labels[b.Key]))
		}
	}
	if b.MinDomains > 1 {
		return 0
	}
	return least
}
