package placer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// sliced asks for slices of this size in a rack each.
func sliced(size int32) *kueue.PodSetTopologyRequest {
	return &kueue.PodSetTopologyRequest{PodSetSliceRequiredTopology: ptr.To("rack"), PodSetSliceSize: ptr.To(size)}
}

func (p podBuilder) running() podBuilder { p.Status.Phase = corev1.PodRunning; return p }

// TestSlicesKeepToTheirDomains: nodes a1 and a2 are in one rack, b1, b2 and b3 in another.
func TestSlicesKeepToTheirDomains(t *testing.T) {
	racks := podspec.Places{on("a1", 1), on("a2", 1), on("b1", 1), on("b2", 1)}
	replica := func(name string) podBuilder {
		b := pod(name)
		b.Labels[tensorstack.ReplicaLabel] = "job-" + name
		return b
	}
	for name, tc := range map[string]struct {
		places podspec.Places
		size   int32
		pods   []podBuilder
		want   []string
	}{
		"another pod of the slice has the place": {racks, 2,
			[]podBuilder{pod("p1").rank(1).at("a2"), pod("p2").rank(2), pod("p3").rank(3).at("b1")}, []string{"p2 to b2"}},
		"the pod of another slice comes later": {racks, 2,
			[]podBuilder{pod("p0").rank(0), pod("p1").rank(1).at("a2"), pod("p2").rank(2), pod("p3").rank(3).at("b1")},
			[]string{"p0 to a1", "p2 to b2"}},
		"a pod of another slice has ended": {racks, 2,
			[]podBuilder{pod("p0").rank(0).done(), pod("p1").rank(1).at("a2"), pod("p2").rank(2), pod("p3").rank(3).at("b1")},
			[]string{"p2 to b2"}},
		"the own place has only to terminate": {racks, 2, []podBuilder{pod("p0").rank(0).done(), pod("p1").rank(1).at("a2"),
			pod("p2").rank(2), pod("p3").rank(3).at("b2"), pod("old").rank(2).at("b1").terminating()},
			nil},
		"replicas of a GenericJob": {racks, 2, []podBuilder{replica("w-1").at("a2"), replica("w-2"), replica("w-3").at("b1")},
			[]string{"w-2 to b2"}},
		"a pod of another slice has the last place": {racks, 2, []podBuilder{pod("p0").rank(0), pod("p1").rank(1).at("a2"),
			pod("p2").rank(2).at("a1").running(), pod("p3").rank(3).at("b1")},
			[]string{"p2 misplaced"}},
		"a pod of another slice is making room": {racks, 2, []podBuilder{pod("p0").rank(0), pod("p1").rank(1).at("a2"),
			pod("p2").rank(2).at("a1").terminating(), pod("p3").rank(3).at("b1")},
			nil},
		"of two pods of another slice one is making room": {racks, 2, []podBuilder{pod("p0").rank(0),
			pod("p1").rank(1).done(), pod("p2").rank(2).at("a2").terminating(), pod("p3").rank(3).at("a1")},
			nil},
		"of two pods of another slice only the one that starts makes room": {podspec.Places{on("a1", 2), on("b1", 2)}, 2,
			[]podBuilder{pod("p0").rank(0), pod("p2").rank(2).bound("a1").running(), pod("p3").rank(3).at("a1")},
			[]string{"p3 misplaced"}},
		"slices that share a node swap places": {podspec.Places{on("a1", 1), on("a2", 2), on("a3", 1)}, 2,
			[]podBuilder{pod("p1").rank(1), pod("p2").rank(2).at("a2"), pod("p3").rank(3).at("a2"), pod("p0").rank(0).at("a1")},
			[]string{"p1 to a3"}},
		"slices apart, of which two share a node": {podspec.Places{on("a1", 1), on("b1", 3), on("a1", 1), on("a2", 1)}, 1,
			[]podBuilder{pod("p4").rank(4).at("a1"), pod("p0").rank(0), pod("p5").rank(5).at("a1")}, []string{"p5 misplaced"}},
		"ranks beyond the places say nothing about slices": {racks, 2,
			[]podBuilder{pod("p7").rank(7).at("b1"), pod("p2").rank(2), pod("p3").rank(3).at("b2")}, []string{"p2 to a1"}},
		"pods without ranks": {racks, 2, []podBuilder{pod("x").at("a1"), pod("y")}, []string{"y to a2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, assigned(tc.places, sliced(tc.size), tc.pods...)); diff != "" {
				t.Errorf("assignments (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSlicesOfAGroupThatBeginsWithinOne: the second Job of two has the ranks 3 to 5, of slices 2-3 and 4-5.
func TestSlicesOfAGroupThatBeginsWithinOne(t *testing.T) {
	places := podspec.Places{on("a1", 2), on("b1", 2), on("c1", 1), on("c2", 1)}
	got := assigned(places, sliced(2), pod("p0").group(1, 2).rank(0), pod("p2").group(1, 2).rank(2).at("c1"),
		pod("p1").group(1, 2).rank(1))
	if diff := cmp.Diff([]string{"p0 to b1", "p1 to c2"}, got); diff != "" {
		t.Errorf("assignments (-want +got):\n%s", diff)
	}
}

// TestEverySliceEndsInItsRack: the pods of each slice end in the rack of its places. If pods of other slices were
// there, they make room, unless no pod waits for theirs.
func TestEverySliceEndsInItsRack(t *testing.T) {
	for name, fill := range map[string]func(*jobPods) bool{"replicas": createReplicas, "indexes": createIndexes} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				slice, mixed := rapid.Int32Range(1, 2).Draw(t, "slice"), rapid.Bool().Draw(t, "pods were in other racks")
				racks := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 8, 8).Draw(t, "racks of the slices")
				g := drawJob(t, fill, []string{"a1", "a2", "b1", "b2"},
					func(rank int, node string) string { return racks[int32(rank)/slice] + node[1:] }, mixed)
				g.slice = slice
				g.converge(t)
				for i, p := range g.list() {
					if want := g.places[i].Node(); !mixed && p.Spec.NodeName[0] != want[0] {
						t.Fatalf("pod %d is on %s, want it in the rack of %s; places %v", i, p.Spec.NodeName, want, g.places)
					}
				}
			})
		})
	}
}
