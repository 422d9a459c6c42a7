package find

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

var drawnTopologies = [][]string{{place.Hostname}, {"block", "rack", place.Hostname}, {"rack", place.Hostname},
	{"block", "rack"}, {"rack"}}

// drawWorld draws a few nodes, some of them with pods.
func drawWorld(t *rapid.T, nodes int) *world {
	w := newWorld()
	w.topologies["t"] = place.Topology{Name: "t", Levels: rapid.SampledFrom(drawnTopologies).Draw(t, "levels")}
	w.flavors["f"] = place.Flavor{Name: "f", Topology: "t"}
	for i := range rapid.IntRange(1, nodes).Draw(t, "nodes") {
		w.setNode(drawNode(t, fmt.Sprintf("n%d", i)))
	}
	return w
}

func (w *world) setNode(n place.Node) { w.nodes[n.Name] = n }

func drawNode(t *rapid.T, name string) place.Node {
	block := rapid.IntRange(1, 2).Draw(t, "block")
	rack := rapid.IntRange(1, 2).Draw(t, "rack")
	n := place.Node{Name: name, Labels: map[string]string{
		"block": fmt.Sprint("b", block), "rack": fmt.Sprint("r", block, rack),
		"pool":                   rapid.SampledFrom([]string{"x", "y"}).Draw(t, "pool"),
		corev1.LabelTopologyZone: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "zone"),
		place.Hostname:           name + ".local"},
		Allocatable: map[string]int64{place.Pods: 8, "cpu": rapid.Int64Range(0, 6).Draw(t, "cpu"),
			"gpu": rapid.Int64Range(0, 4).Draw(t, "gpu")}}
	switch rapid.IntRange(0, 19).Draw(t, "trouble") {
	case 0:
		n.Cordoned = true
	case 1:
		n.Failed = true
	case 2:
		n.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
	case 3:
		n.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectPreferNoSchedule}}
	case 4:
		delete(n.Labels, "rack")
	case 5:
		delete(n.Labels, place.Hostname)
	case 6:
		n.Labels[place.Hostname] = "n0.local"
	case 7:
		n.Allocatable[place.Pods] = 2
	case 8, 9:
		n.Allocatable["example.com/device"] = 1
	}
	return n
}

// drawAsks draws a few small asks that use every feature.
func drawAsks(t *rapid.T, w *world, most int) []place.Ask {
	levels := append([]string{}, w.topologies["t"].Levels...)
	var out []place.Ask
	left := most
	for i := range rapid.IntRange(1, 3).Draw(t, "asks") {
		a := place.Ask{PodSet: fmt.Sprint("set", i), Flavor: "f", PerPod: map[string]int64{}}
		a.Count = int32(rapid.IntRange(0, left).Draw(t, "count"))
		left -= int(a.Count)
		a.PerPod["cpu"] = rapid.Int64Range(0, 3).Draw(t, "cpu")
		a.PerPod["gpu"] = rapid.Int64Range(0, 2).Draw(t, "gpu")
		if rapid.Bool().Draw(t, "level?") {
			a.Level = rapid.SampledFrom(levels).Draw(t, "level")
			a.Mandatory = rapid.Bool().Draw(t, "mandatory")
		}
		if rapid.IntRange(0, 2).Draw(t, "sliced?") == 0 {
			at := rapid.IntRange(0, len(levels)-1).Draw(t, "slice level")
			size := int32(rapid.IntRange(1, 4).Draw(t, "slice size"))
			a.Slices = []place.Slice{{Level: levels[at], Size: size}}
			if rapid.Bool().Draw(t, "nested") && size%2 == 0 {
				a.Slices = append(a.Slices,
					place.Slice{Level: levels[rapid.IntRange(at, len(levels)-1).Draw(t, "inner level")], Size: size / 2})
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "exclusive?") == 0 {
			a.ExclusiveKey = rapid.SampledFrom([]string{"rack", "block", place.Hostname}).Draw(t, "exclusive by")
		}
		if rapid.IntRange(0, 7).Draw(t, "port?") == 0 {
			a.HostPorts = []place.HostPort{{Port: 80}}
		}
		if rapid.IntRange(0, 7).Draw(t, "selector?") == 0 {
			a.NodeSelector = map[string]string{"pool": "x"}
		}
		if rapid.Bool().Draw(t, "tolerates") {
			a.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}
		if len(out) > 0 && rapid.IntRange(0, 2).Draw(t, "grouped?") == 0 {
			a.Group, out[i-1].Group = "g", "g"
			a.Level, a.Mandatory = out[i-1].Level, out[i-1].Mandatory
			if a.ExclusiveKey != "" && out[i-1].ExclusiveKey != "" {
				a.ExclusiveKey = out[i-1].ExclusiveKey
			}
		}
		out = append(out, a)
	}
	return out
}

// drawAvoid draws nodes that all asks avoid, as those of one workload do.
func drawAvoid(t *rapid.T) []string {
	var out []string
	for i := range 4 {
		if rapid.IntRange(0, 3).Draw(t, "avoided?") == 0 {
			out = append(out, fmt.Sprintf("n%d.local", i))
		}
	}
	return out
}

// mistakes reports whether the shortfall is a mistake in an ask, whatever the nodes.
func mistakes(short *Shortfall) bool { return short != nil && short.Mistake != "" }

func TestFindIsValidAndComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 5)
		asks := drawAsks(t, w, 6)
		avoid := drawAvoid(t)
		for i := range asks {
			asks[i].Avoid = avoid
		}
		on := rapid.SampledFrom([]place.Ledger{place.Now, place.Planned}).Draw(t, "ledger")
		placed, short := w.fresh().Find(asks, on)
		if mistakes(short) {
			t.Skip()
		}
		if short == nil {
			if wrong := w.invalid(asks, placed, on); wrong != "" {
				t.Fatalf("%s: %v\n%s%s", wrong, placed, w, say(asks))
			}
			return
		}
		if w.anyAssignment(asks, on) {
			t.Fatalf("there are places, but: %s\n%s%s", short.Message(), w, say(asks))
		}
	})
}

func TestFindIsRepeatableAndChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 6)
		m := w.fresh()
		asks, others := drawAsks(t, w, 8), drawAsks(t, w, 8)
		first, _ := m.Find(asks, place.Now)
		m.Find(others, place.Planned)
		m.EverFits(others)
		again, _ := m.Find(asks, place.Now)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
		tried, ok := m.TryFind(asks, place.Now)
		if diff := cmp.Diff(first, tried); diff != "" || ok != (first != nil) {
			t.Fatalf("TryFind = %v (-Find +TryFind):\n%s", ok, diff)
		}
		if fits := m.Fits(asks, place.Now); fits != (first != nil) {
			t.Fatalf("Fits = %v, which contradicts Find", fits)
		}
	})
}

func key(name string) order.Key { return order.Key{Namespace: "ns", Name: name} }

// String lists everything in the world.
func (w *world) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		fmt.Fprintf(&b, "%+v\n", w.nodes[name])
	}
	for _, p := range sorted(w.pods) {
		fmt.Fprintf(&b, "%+v\n", p.value)
	}
	for _, h := range sorted(w.holdings) {
		fmt.Fprintf(&b, "%v %+v\n", h.key, *h.value)
	}
	return fmt.Sprintf("%v\n%s", w.topologies, b.String())
}

func say(asks []place.Ask) string {
	var b strings.Builder
	for _, a := range asks {
		fmt.Fprintf(&b, "%+v\n", a)
	}
	return b.String()
}
