package place

import (
	"fmt"
	"testing"
)

// bounded gives an ask a bound by a label whose pods count in the pod sets, its own if none are named.
func bounded(kind BoundKind, key string, counts ...string) func(*Ask) {
	return func(a *Ask) {
		if len(counts) == 0 {
			counts = []string{a.PodSet}
		}
		a.Bounds = append(a.Bounds, Bound{Kind: kind, Key: key, Counts: counts, MaxSkew: 1})
	}
}

// skewed sets the largest skew of the last bound.
func skewed(most int32) func(*Ask) {
	return func(a *Ask) { a.Bounds[len(a.Bounds)-1].MaxSkew = most }
}

func named(podSet string) func(*Ask) { return func(a *Ask) { a.PodSet = podSet } }

func keeping(places ...Assignment) func(*Ask) { return func(a *Ask) { a.Kept = places } }

// TestBounds: each node of the scene has 4 GPUs, so that without bounds all pods would be on one or two nodes.
func TestBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		asks []Ask
		want string
	}{
		"apart by node":                  {[]Ask{gpus(2, 1, bounded(Apart, Hostname))}, "a1:1 a2:1"},
		"apart by rack":                  {[]Ask{gpus(3, 1, bounded(Apart, "rack"))}, "a1:1 b1:1 c1:1"},
		"apart by node, in one rack":     {[]Ask{gpus(2, 1, required("rack"), bounded(Apart, Hostname))}, "a1:1 a2:1"},
		"apart by rack, in slices":       {[]Ask{gpus(4, 1, sliced("block", 2), bounded(Apart, Hostname))}, "a1:1 a2:1 b1:1 b2:1"},
		"apart by node, one of them too": {[]Ask{gpus(1, 1, named("main"), bounded(Apart, Hostname, "main", "other")), gpus(1, 1, named("other"))}, "a1:1 | a2:1"},
		"apart by node from an earlier pod set": {[]Ask{gpus(1, 1, named("other")), gpus(2, 1, named("main"), bounded(Apart, Hostname, "other"))},
			"a2:1 | a1:2"},
		"too many for the racks": {[]Ask{gpus(4, 1, bounded(Apart, "rack"))},
			`topology "t" allows to fit only 3 out of 4 pod(s). Total nodes: 6; bounded by podAntiAffinity by rack`},
		"evenly by node":                    {[]Ask{gpus(4, 1, bounded(Even, Hostname))}, "a1:1 a2:1 b1:1 b2:1"},
		"evenly by node, on all of them":    {[]Ask{gpus(7, 1, bounded(Even, Hostname))}, "a1:2 a2:1 b1:1 b2:1 c1:1 c2:1"},
		"evenly by rack":                    {[]Ask{gpus(6, 1, bounded(Even, "rack"))}, "a1:2 b1:2 c1:2"},
		"evenly by rack and node":           {[]Ask{gpus(6, 1, bounded(Even, "rack"), bounded(Even, Hostname))}, "a1:1 a2:1 b1:1 b2:1 c1:1 c2:1"},
		"evenly by rack with a skew of 4":   {[]Ask{gpus(4, 1, bounded(Even, "rack"), skewed(4))}, "a1:4"},
		"evenly by rack, in one rack":       {[]Ask{gpus(2, 1, required("rack"), bounded(Even, "rack"))}, `topology "t" allows to fit only 1 out of 2 pod(s). Total nodes: 6; bounded by topologySpreadConstraint by rack with maxSkew 1`},
		"together by rack":                  {[]Ask{gpus(8, 1, bounded(Together, "rack"))}, "a1:4 a2:4"},
		"together by rack, too many":        {[]Ask{gpus(9, 1, bounded(Together, "rack"))}, `topology "t" allows to fit only 8 out of 9 pod(s). Total nodes: 6; bounded by podAffinity by rack`},
		"together with another by node":     {[]Ask{gpus(2, 1, named("w"), bounded(Together, Hostname, "l")), gpus(1, 2, named("l"))}, "a1:2 | a1:1"},
		"beside a pod that stays, apart":    {[]Ask{gpus(1, 1, bounded(Apart, Hostname), keeping(Assignment{"main", []NodeCount{{"a1", 1}}}))}, "a2:1"},
		"beside a pod that stays, evenly":   {[]Ask{gpus(5, 1, bounded(Even, Hostname), keeping(Assignment{"main", []NodeCount{{"b1", 1}}}))}, "a1:1 a2:1 b2:1 c1:1 c2:1"},
		"beside a pod that stays, together": {[]Ask{gpus(1, 1, bounded(Together, "block"), keeping(Assignment{"main", []NodeCount{{"c2", 1}}}))}, "c1:1"},
		"fewer on a node that refused more": {[]Ask{gpus(2, 1, func(a *Ask) { a.Limits = []NodeCount{{"a1", 1}} })}, "a2:2"},
		"all, and a node that refused more": {[]Ask{gpus(21, 1, func(a *Ask) { a.Limits = []NodeCount{{"a1", 1}} })}, "b1:4 b2:4 a2:4 a1:1 c1:4 c2:4"},
		"a label that is no level, apart":   {[]Ask{gpus(2, 1, bounded(Apart, "pool"))}, "c1:1 a1:1"},
		"on one node, evenly by the label of its pool": {[]Ask{gpus(2, 1, func(a *Ask) { a.NodeSelector = map[string]string{"pool": "x"} },
			bounded(Together, Hostname), bounded(Even, "pool"))}, "a1:2"},
		"evenly by rack, also as one pod sees it": {[]Ask{gpus(6, 1, bounded(Even, "rack"), bounded(Even, "rack"),
			func(a *Ask) { a.Bounds[1].MinDomains = 2 })}, `topology "t" allows to fit only 3 out of 6 pod(s). Total nodes: 6; bounded by ` +
			`topologySpreadConstraint by rack with maxSkew 1, topologySpreadConstraint by rack with maxSkew 1`},
		"a label that is no level, together": {[]Ask{gpus(8, 1, bounded(Together, "pool"))}, "a1:4 a2:4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			for _, n := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
				s.node(n, labeled("pool", map[byte]string{'a': "x", 'b': "x", 'c': "y"}[n[0]]))
			}
			if got := s.find(Now, tc.asks...); got != tc.want {
				t.Errorf("places: %s\nwant:   %s", got, tc.want)
			}
		})
	}
}

// TestRepairKeepsBounds: the replacement of a pod does not go to the node of another one from which it must be apart, though
// that node is nearest.
func TestRepairKeepsBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		ask  Ask
		want string
	}{
		"apart":  {gpus(2, 1, bounded(Apart, Hostname)), "a1:1 b1:1, 1 moved"},
		"evenly": {gpus(2, 1, bounded(Even, Hostname)), "a1:1 b1:1, 1 moved"},
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
	ask := gpus(3, 1, func(a *Ask) { a.Limits = []NodeCount{{"a1", 1}} })
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
	for name, worst := range map[string]Bound{
		"evenly by a label of all nodes": {Kind: Even, Key: "os", MaxSkew: 1_000_000},
		"evenly by node":                 {Kind: Even, Key: Hostname, MaxSkew: 1},
		"apart by rack":                  {Kind: Apart, Key: "rack"},
		"together by node":               {Kind: Together, Key: Hostname},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			for i := range 200 {
				s.node(fmt.Sprintf("a%d", i), labeled("os", "linux"))
			}
			asks := worstGang(64, worst)
			before := s.Counted()
			s.Find(asks, Now)
			if counted := s.Counted() - before; counted > 1_000_000 {
				t.Errorf("the search counted as much as %d nodes, want at most 1,000,000", counted)
			}
		})
	}
}

// worstGang returns pod sets with eight bounds each whose pods all count. The first one must be apart by a label that all
// nodes share, so that no place keeps its bounds.
func worstGang(sets int, bound Bound) []Ask {
	var asks []Ask
	for i := range sets {
		asks = append(asks, Ask{PodSet: fmt.Sprintf("s%02d", i), Flavor: "f", Count: 50, PerPod: map[string]int64{"cpu": int64(i + 1)}})
		bound.Counts = append(bound.Counts, asks[i].PodSet)
	}
	for i := range asks {
		for range 8 {
			bound.MaxSkew++
			asks[i].Bounds = append(asks[i].Bounds, bound)
		}
	}
	asks[0].Bounds[0] = Bound{Kind: Apart, Key: "os", Counts: []string{"s00"}}
	return asks
}
