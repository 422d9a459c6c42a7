package workloads

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// onNode returns a place for this many pods on the node.
func onNode(name string, count int32) podspec.Place {
	return podspec.Place{Domain: map[string]string{corev1.LabelHostname: name}, Count: count}
}

func TestPlacesOf(t *testing.T) {
	domain := func(count int32, values ...string) kueue.TopologyDomainAssignment {
		return kueue.TopologyDomainAssignment{Values: values, Count: count}
	}
	for name, tc := range map[string]struct {
		assignment *kueue.TopologyAssignment
		want       podspec.Places
	}{
		"no assignment": {nil, nil},
		"nodes": {&kueue.TopologyAssignment{Levels: []string{corev1.LabelHostname},
			Domains: []kueue.TopologyDomainAssignment{domain(2, "b"), domain(1, "a")}},
			podspec.Places{onNode("b", 2), onNode("a", 1)}},
		"nodes under wider levels": {&kueue.TopologyAssignment{Levels: []string{"rack", corev1.LabelHostname},
			Domains: []kueue.TopologyDomainAssignment{domain(2, "r1", "a")}},
			podspec.Places{onNode("a", 2)}},
		"wider than nodes": {&kueue.TopologyAssignment{Levels: []string{"block", "rack"},
			Domains: []kueue.TopologyDomainAssignment{domain(2, "b1", "r1")}},
			podspec.Places{{Domain: map[string]string{"block": "b1", "rack": "r1"}, Count: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, jobs.PlacesOf(tc.assignment)); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

// placed returns a Workload that was admitted with four pods of one GPU each on node a, where no more fit, and two on
// node b, where more would.
func placed() (*kueue.Workload, jobs.Nodes) {
	w := waiting().admitted().w
	w.Name = "wl"
	w.Spec.PodSets[0].Count = 6
	w.Spec.PodSets[0].Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}
	w.Status.Admission.PodSetAssignments[0].TopologyAssignment = &kueue.TopologyAssignment{
		Levels: []string{corev1.LabelHostname}, Domains: []kueue.TopologyDomainAssignment{
			{Values: []string{"a"}, Count: 4}, {Values: []string{"b"}, Count: 2}}}
	w.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](6)
	nodes := jobs.Nodes{}
	for _, name := range []string{"a", "b"} {
		nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"rack": "r1", "own": name}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4"),
				"pods": resource.MustParse("110")}}}
	}
	return w, nodes
}

func TestInjectionOfAPlacedPodSet(t *testing.T) {
	w, nodes := placed()
	g := grantOf(w, nil, nodes).PodSets["main"]
	if got := g.For(g.All()); got.Annotations[kueue.WorkloadAnnotation] != "wl" ||
		got.Labels[kueue.PodSetLabel] != "main" {
		t.Errorf("annotations %v, labels %v, want the Workload wl and the pod set main", got.Annotations, got.Labels)
	}
	if got := g.For(g.All()).Gates; len(got) != 1 {
		t.Errorf("pods 0 to 6 have the gates %v, want one", got)
	}
	if got := g.For(jobs.Part{From: 4, To: 6,
		Places: g.Places.Ranks(4, 6)}).NodeSelector[corev1.LabelHostname]; got != "b" {
		t.Errorf("the last two pods select the node %q, want b", got)
	}
	nodes["b"].Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("2")
	if diff := cmp.Diff([]string{"a", "b"}, g.For(g.All()).Nodes); diff != "" {
		t.Errorf("nodes of all pods, which fill them (-want +got):\n%s", diff)
	}
}

// TestTemplateDoesNotMixSlices: pods of several slices cannot share a template that selects the nodes of all, so they
// are gated.
func TestTemplateDoesNotMixSlices(t *testing.T) {
	w, nodes := placed()
	nodes["b"].Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("2")
	for name, tc := range map[string]struct {
		request kueue.PodSetTopologyRequest
		gated   bool
	}{
		"one slice":  {kueue.PodSetTopologyRequest{PodSetSliceSize: ptr.To[int32](6)}, false},
		"two slices": {kueue.PodSetTopologyRequest{PodSetSliceSize: ptr.To[int32](3)}, true},
		"slices within a slice": {kueue.PodSetTopologyRequest{
			PodsetSliceRequiredTopologyConstraints: []kueue.PodsetSliceRequiredTopologyConstraint{{Size: 6}, {Size: 2}}}, true},
		"no slices": {kueue.PodSetTopologyRequest{Required: ptr.To("rack")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w.Spec.PodSets[0].TopologyRequest = &tc.request
			g := grantOf(w, nil, nodes).PodSets["main"]
			if got := g.For(g.All()); len(got.Gates) > 0 != tc.gated {
				t.Errorf("gates %v, nodes %v, want gates: %v", got.Gates, got.Nodes, tc.gated)
			}
		})
	}
}

func TestDomain(t *testing.T) {
	w, nodes := placed()
	g := grantOf(w, nil, nodes).PodSets["main"]
	for name, tc := range map[string]struct {
		label    string
		from, to int32
		want     string
	}{
		"all pods in one rack":   {"rack", 0, 6, "r1"},
		"pods of one node":       {"own", 4, 6, "b"},
		"pods of two nodes":      {"own", 0, 6, ""},
		"label that no node has": {"zone", 0, 6, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := g.Domain(tc.label, jobs.Part{From: tc.from, To: tc.to,
				Places: g.Places.Ranks(tc.from, tc.to)}); got != tc.want || ok != (tc.want != "") {
				t.Errorf("Domain = %q, %v, want %q", got, ok, tc.want)
			}
		})
	}
}

// TestTheDomainOfAPlaceIsThatOfItsAdmission, whatever became of its node. A label that the place does not name is known
// only while the node is there.
func TestTheDomainOfAPlaceIsThatOfItsAdmission(t *testing.T) {
	w, nodes := placed()
	assignment := w.Status.Admission.PodSetAssignments[0].TopologyAssignment
	assignment.Domains = assignment.Domains[:1]
	nodes["a"].Labels[corev1.LabelHostname] = "renamed"
	g := grantOf(w, nil, nodes).PodSets["main"]
	says := func(label, want string) {
		t.Helper()
		if got, ok := g.Domain(label, jobs.Part{To: 4, Places: g.Places}); got != want || ok != (want != "") {
			t.Errorf("Domain of %s = %q, %v, want %q", label, got, ok, want)
		}
	}
	says(corev1.LabelHostname, "a")
	says("own", "a")
	delete(nodes, "a")
	says(corev1.LabelHostname, "a")
	says("own", "")
}
