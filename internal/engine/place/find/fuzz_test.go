package find

import (
	"math"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// FuzzExtremes checks that amounts of any size, also negative ones, neither overflow nor corrupt anything, that charges
// are released completely, and that places that were found fit.
func FuzzExtremes(f *testing.F) {
	f.Add(int64(4), int64(1), int64(3), int32(5), int32(2), int64(110))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int32(math.MaxInt32), int32(math.MaxInt32),
		int64(math.MaxInt64))
	f.Add(int64(math.MinInt64), int64(math.MinInt64), int64(-1), int32(math.MinInt32), int32(-1), int64(math.MinInt64))
	f.Add(int64(math.MaxInt64), int64(1), int64(1), int32(math.MaxInt32), int32(math.MaxInt32), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, allocatable, perPod, foreign int64, count, held int32, pods int64) {
		s := &scene{newFinding(), t}
		s.SetTopology(place.Topology{Name: "t", Levels: []string{"rack", place.Hostname}})
		s.SetFlavor(place.Flavor{Name: "f", Topology: "t"})
		for _, name := range []string{"a1", "a2", "b1"} {
			s.SetNode(place.Node{Name: name, Labels: map[string]string{"rack": name[:1], place.Hostname: name},
				Allocatable: map[string]int64{place.Pods: pods, "gpu": allocatable}})
		}
		ask := place.Ask{PodSet: "main", Flavor: "f", Count: count, PerPod: map[string]int64{"gpu": perPod}, Level: "rack",
			Mandatory: true, Slices: []place.Slice{{Level: place.Hostname, Size: held}}}
		before := s.find(place.Now, ask)
		s.Hold(key("w"),
			&place.Holding{PodSets: []place.HeldPodSet{{Ask: ask, Nodes: []place.NodeCount{{Node: "a1", Count: held},
				{Node: "a1", Count: count}, {Node: "b1", Count: held}}, Ended: count}}})
		s.Hold(key("v"),
			&place.Holding{PodSets: []place.HeldPodSet{{Ask: ask, Nodes: []place.NodeCount{{Node: "a1", Count: held}}}},
				Nominated: true})
		s.pod("p", "a1", foreign).pod("q", "a1", perPod, of("w", "main")).pod("r", "b1", foreign, of("w", "main"))
		placed, short := s.Find([]place.Ask{ask}, place.Now)
		if short == nil && !s.FitsAt([]place.Ask{ask}, placed, place.Now) {
			t.Fatalf("FitsAt is false for places that were found: %v", placed)
		}
		s.Diagnose([]place.Ask{ask})
		s.EverFits([]place.Ask{ask})
		if held < 1000 && count < 1000 {
			for _, workload := range s.TakeInvalid() {
				s.Repair(workload)
			}
		}
		for _, name := range []string{"p", "q", "r"} {
			s.DeletePod(key(name))
		}
		s.Hold(key("w"), nil)
		s.Hold(key("v"), nil)
		if after := s.find(place.Now, ask); after != before {
			t.Fatalf("find returned %s before and %s after", before, after)
		}
	})
}
