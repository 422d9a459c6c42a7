package find

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// bounded gives an ask a bound by a label whose pods count in the pod sets, its own if none are named.
func bounded(kind place.BoundKind, key string, counts ...string) func(*place.Ask) {
	return func(a *place.Ask) {
		if len(counts) == 0 {
			counts = []string{a.PodSet}
		}
		a.Bounds = append(a.Bounds, place.Bound{Kind: kind, Key: key, Counts: counts, MaxSkew: 1})
	}
}

// skewed sets the largest skew of the last bound.
func skewed(most int32) func(*place.Ask) {
	return func(a *place.Ask) { a.Bounds[len(a.Bounds)-1].MaxSkew = most }
}

func named(podSet string) func(*place.Ask) { return func(a *place.Ask) { a.PodSet = podSet } }

func keeping(places ...place.Assignment) func(*place.Ask) {
	return func(a *place.Ask) { a.Kept = places }
}

// TestBounds: each node of the scene has 4 GPUs, so that without bounds all pods would be on one or two nodes.
func TestBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		asks []place.Ask
		want string
	}{
		"apart by node": {[]place.Ask{gpus(2, 1, bounded(place.Apart, place.Hostname))}, "a1:1 a2:1"},
		"apart by rack": {[]place.Ask{gpus(3, 1, bounded(place.Apart, "rack"))}, "a1:1 b1:1 c1:1"},
		"apart by node, in one rack": {[]place.Ask{gpus(2, 1, required("rack"), bounded(place.Apart, place.Hostname))},
			"a1:1 a2:1"},
		"apart by rack, in slices": {[]place.Ask{gpus(4, 1, sliced("block", 2), bounded(place.Apart, place.Hostname))},
			"a1:1 a2:1 b1:1 b2:1"},
		"apart by node, one of them too": {[]place.Ask{gpus(1, 1, named("main"),
			bounded(place.Apart, place.Hostname, "main", "other")), gpus(1, 1, named("other"))}, "a1:1 | a2:1"},
		"apart by node from an earlier pod set": {[]place.Ask{gpus(1, 1, named("other")),
			gpus(2, 1, named("main"), bounded(place.Apart, place.Hostname, "other"))},
			"a2:1 | a1:2"},
		"too many for the racks": {[]place.Ask{gpus(4, 1, bounded(place.Apart, "rack"))},
			`topology "t" allows to fit only 3 out of 4 pod(s). Total nodes: 6; bounded by podAntiAffinity by rack`},
		"evenly by node": {[]place.Ask{gpus(4, 1, bounded(place.Even, place.Hostname))},
			"a1:1 a2:1 b1:1 b2:1"},
		"evenly by node, on all of them": {[]place.Ask{gpus(7, 1, bounded(place.Even, place.Hostname))},
			"a1:2 a2:1 b1:1 b2:1 c1:1 c2:1"},
		"evenly by rack": {[]place.Ask{gpus(6, 1, bounded(place.Even, "rack"))}, "a1:2 b1:2 c1:2"},
		"evenly by rack and node": {[]place.Ask{gpus(6, 1, bounded(place.Even, "rack"),
			bounded(place.Even, place.Hostname))}, "a1:1 a2:1 b1:1 b2:1 c1:1 c2:1"},
		"evenly by rack with a skew of 4": {[]place.Ask{gpus(4, 1, bounded(place.Even, "rack"), skewed(4))}, "a1:4"},
		"evenly by rack, in one rack": {[]place.Ask{gpus(2, 1, required("rack"), bounded(place.Even, "rack"))},
			`topology "t" allows to fit only 1 out of 2 pod(s). Total nodes: 6; bounded by topologySpreadConstraint by rack with maxSkew 1`},
		"together by rack": {[]place.Ask{gpus(8, 1, bounded(place.Together, "rack"))}, "a1:4 a2:4"},
		"together by rack, too many": {[]place.Ask{gpus(9, 1, bounded(place.Together, "rack"))},
			`topology "t" allows to fit only 8 out of 9 pod(s). Total nodes: 6; bounded by podAffinity by rack`},
		"together with another by node": {[]place.Ask{gpus(2, 1, named("w"),
			bounded(place.Together, place.Hostname, "l")), gpus(1, 2, named("l"))}, "a1:2 | a1:1"},
		"beside a pod that stays, apart": {[]place.Ask{gpus(1, 1, bounded(place.Apart, place.Hostname),
			keeping(place.Assignment{PodSet: "main", Nodes: []place.NodeCount{{Node: "a1", Count: 1}}}))}, "a2:1"},
		"beside a pod that stays, evenly": {[]place.Ask{gpus(5, 1, bounded(place.Even, place.Hostname),
			keeping(place.Assignment{PodSet: "main", Nodes: []place.NodeCount{{Node: "b1", Count: 1}}}))},
			"a1:1 a2:1 b2:1 c1:1 c2:1"},
		"beside a pod that stays, together": {[]place.Ask{gpus(1, 1, bounded(place.Together, "block"),
			keeping(place.Assignment{PodSet: "main", Nodes: []place.NodeCount{{Node: "c2", Count: 1}}}))}, "c1:1"},
		"fewer on a node that refused more": {[]place.Ask{gpus(2, 1,
			func(a *place.Ask) { a.Limits = []place.NodeCount{{Node: "a1", Count: 1}} })}, "a2:2"},
		"all, and a node that refused more": {[]place.Ask{gpus(21, 1,
			func(a *place.Ask) { a.Limits = []place.NodeCount{{Node: "a1", Count: 1}} })}, "b1:4 b2:4 a2:4 a1:1 c1:4 c2:4"},
		"a label that is no level, apart": {[]place.Ask{gpus(2, 1, bounded(place.Apart, "pool"))}, "c1:1 a1:1"},
		"on one node, evenly by the label of its pool": {[]place.Ask{gpus(2, 1,
			func(a *place.Ask) { a.NodeSelector = map[string]string{"pool": "x"} }, bounded(place.Together, place.Hostname),
			bounded(place.Even, "pool"))}, "a1:2"},
		"evenly by rack, also as one pod sees it": {[]place.Ask{gpus(6, 1, bounded(place.Even, "rack"),
			bounded(place.Even, "rack"), func(a *place.Ask) { a.Bounds[1].MinDomains = 2 })},
			`topology "t" allows to fit only 3 out of 6 pod(s). Total nodes: 6; bounded by ` +
				`topologySpreadConstraint by rack with maxSkew 1, topologySpreadConstraint by rack with maxSkew 1`},
		"a label that is no level, together": {[]place.Ask{gpus(8, 1, bounded(place.Together, "pool"))}, "a1:4 a2:4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			for _, n := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
				s.node(n, labeled("pool", map[byte]string{'a': "x", 'b': "x", 'c': "y"}[n[0]]))
			}
			if got := s.find(place.Now, tc.asks...); got != tc.want {
				t.Errorf("places: %s\nwant:   %s", got, tc.want)
			}
		})
	}
}

// TestRepairKeepsBounds: the replacement of a pod does not go to the node of another one from which it must be apart,
// though that node is nearest.
func TestRepairKeepsBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		ask  place.Ask
		want string
	}{
		"apart":  {gpus(2, 1, bounded(place.Apart, place.Hostname)), "a1:1 b1:1, 1 moved"},
		"evenly": {gpus(2, 1, bounded(place.Even, place.Hostname)), "a1:1 b1:1, 1 moved"},
		"free":   {gpus(2, 1), "a1:2, 1 moved"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).hold("w", tc.ask, "a1:1 a2:1")
			s.pod("w-0", "a1", 1, of("w", "main"))
			s.node("a2", failed)
			if got := s.repair("w"); got != tc.want {
				t.Errorf("repair: %s, want %s", got, tc.want)
			}
		})
	}
}

// TestPlacesBeyondALimitAreInvalid: kube-scheduler refused a second pod of the workload on a node.
func TestPlacesBeyondALimitAreInvalid(t *testing.T) {
	ask := gpus(3, 1, func(a *place.Ask) { a.Limits = []place.NodeCount{{Node: "a1", Count: 1}} })
	s := newScene(t).hold("w", ask, "a1:3").pod("w-0", "a1", 1, of("w", "main"))
	if got := s.invalid(); got != "w" {
		t.Errorf("invalid = %q, want w", got)
	}
	if got, want := s.repair("w"), "a1:1 a2:2, 2 moved"; got != want {
		t.Errorf("repair: %s, want %s", got, want)
	}
}

// TestBoundsCostLittleHoweverManyThereAre: a gang of 64 pod sets with 8 bounds each that no place keeps took minutes on
// 200 nodes.
func TestBoundsCostLittleHoweverManyThereAre(t *testing.T) {
	for name, worst := range map[string]place.Bound{
		"evenly by a label of all nodes": {Kind: place.Even, Key: "os", MaxSkew: 1_000_000},
		"evenly by node":                 {Kind: place.Even, Key: place.Hostname, MaxSkew: 1},
		"apart by rack":                  {Kind: place.Apart, Key: "rack"},
		"together by node":               {Kind: place.Together, Key: place.Hostname},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			for i := range 200 {
				s.node(fmt.Sprintf("a%d", i), labeled("os", "linux"))
			}
			asks := worstGang(64, worst)
			before := s.Counted()
			s.Find(asks, place.Now)
			if counted := s.Counted() - before; counted > 1_000_000 {
				t.Errorf("the search counted as much as %d nodes, want at most 1,000,000", counted)
			}
		})
	}
}

// worstGang returns pod sets with eight bounds each whose pods all count. The first one must be apart by a label that
// all nodes share, so that no place keeps its bounds.
func worstGang(sets int, bound place.Bound) []place.Ask {
	var asks []place.Ask
	for i := range sets {
		asks = append(asks, place.Ask{PodSet: fmt.Sprintf("s%02d", i), Flavor: "f", Count: 50,
			PerPod: map[string]int64{"cpu": int64(i + 1)}})
		bound.Counts = append(bound.Counts, asks[i].PodSet)
	}
	for i := range asks {
		for range 8 {
			bound.MaxSkew++
			asks[i].Bounds = append(asks[i].Bounds, bound)
		}
	}
	asks[0].Bounds[0] = place.Bound{Kind: place.Apart, Key: "os", Counts: []string{"s00"}}
	return asks
}
