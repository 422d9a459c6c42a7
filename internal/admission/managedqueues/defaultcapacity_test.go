package managedqueues

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	configuration "github.com/musterhq/muster/internal/config"
)

// nodesCapacity is the capacity of an operator without a configuration.
var nodesCapacity = capacityOf(configuration.Default().DefaultQueue)

// TestTheDefaultQueueIsTheSumOfUsableNodes: nodes that are closed for a time count too, as long as they exist.
func TestTheDefaultQueueIsTheSumOfUsableNodes(t *testing.T) {
	four := func(name string) admissiontest.NodeBuilder {
		return admissiontest.Node(name, "cpu", "4", "memory", "8Gi", "pods", "110")
	}
	none := []string{"default: cpu=0", "default: memory=0", "default: pods=0"}
	two := []string{"default: cpu=8", "default: memory=16Gi", "default: pods=220"}
	for name, tc := range map[string]struct {
		nodes []admissiontest.NodeBuilder
		want  []string
	}{
		"no nodes": {nil, none},
		"two nodes with different resources": {[]admissiontest.NodeBuilder{four("a"),
			admissiontest.Node("b", "cpu", "500m", "nvidia.com/gpu", "8")},
			[]string{"default: cpu=4500m", "default: memory=8Gi", "default: nvidia.com/gpu=8", "default: pods=110"}},
		"a cordoned node, whose jobs still use quota": {[]admissiontest.NodeBuilder{four("a").Cordoned(),
			four("b")}, two},
		"a node that does not answer": {
			[]admissiontest.NodeBuilder{
				four("a").Tainted(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule), four("b")}, two},
		"a node that an autoscaler removes": {
			[]admissiontest.NodeBuilder{
				four("a").Tainted("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule), four("b")}, two},
		"nodes with taints": {[]admissiontest.NodeBuilder{four("a").
			Tainted("t", corev1.TaintEffectNoSchedule), four("b").Tainted("t", corev1.TaintEffectNoExecute)}, none},
		"a node reserved for its devices": {[]admissiontest.NodeBuilder{admissiontest.Node("a", "cpu",
			"4", "memory", "8Gi", "nvidia.com/gpu", "8").Tainted("nvidia.com/gpu", corev1.TaintEffectNoSchedule)},
			[]string{"default: cpu=4", "default: memory=8Gi", "default: nvidia.com/gpu=8", "default: pods=0"}},
		"a node reserved for devices that it does not have": {
			[]admissiontest.NodeBuilder{four("a").Tainted("nvidia.com/gpu", corev1.TaintEffectNoSchedule)}, none},
		"a node reserved for its devices, with another taint": {[]admissiontest.NodeBuilder{admissiontest.Node("a", "cpu",
			"4", "nvidia.com/gpu", "8").Tainted("nvidia.com/gpu", corev1.TaintEffectNoSchedule).
			Tainted("t", corev1.TaintEffectNoSchedule)}, none},
		"a node with a PreferNoSchedule taint": {
			[]admissiontest.NodeBuilder{four("a").Tainted("t", corev1.TaintEffectPreferNoSchedule)},
			[]string{"default: cpu=4", "default: memory=8Gi", "default: pods=110"}},
		"a terminating node, which is being drained": {[]admissiontest.NodeBuilder{four("a").Deleting(now), four("b")}, two},
		"a reserved node that is cordoned": {
			[]admissiontest.NodeBuilder{four("a").Tainted("t", corev1.TaintEffectNoSchedule).Cordoned()}, none},
		"a node that the flavor does not select": {[]admissiontest.NodeBuilder{four("a").Labeled(corev1.LabelOSStable,
			"windows")}, none},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []corev1.Node
			for _, n := range tc.nodes {
				nodes = append(nodes, *n.Node)
			}
			got := nodesCapacity.queue(usable(nodes, &defaultFlavor().Spec), false)
			if diff := cmp.Diff(tc.want, quotaOf(got)); diff != "" {
				t.Errorf("quota (-want +got):\n%s", diff)
			}
			if got.Name != "default" || got.Spec.NamespaceSelector == nil || got.Labels["muster.dev/follows-nodes"] == "" {
				t.Errorf("got ClusterQueue %+v, want default with a selector and the label follows-nodes", got)
			}
		})
	}
}

// TestNodesThatTheFlavorTolerates: they count, as an administrator's own flavor default may have tolerations.
func TestNodesThatTheFlavorTolerates(t *testing.T) {
	flavor := defaultFlavor()
	flavor.Spec.Tolerations = []corev1.Toleration{{Key: "t", Operator: corev1.TolerationOpExists}}
	nodes := []corev1.Node{*admissiontest.Node("a", "cpu", "4").Tainted("t", corev1.TaintEffectNoSchedule).Node,
		*admissiontest.Node("b", "cpu", "2").Tainted("other", corev1.TaintEffectNoSchedule).Node}
	if got := usable(nodes, &flavor.Spec); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("usable nodes = %v, want a", got)
	}
}

// TestClosedNodesDoNotCountWithoutPlacement: jobs of an administrator's own flavor without a topology would be admitted
// to wait for these nodes.
func TestClosedNodesDoNotCountWithoutPlacement(t *testing.T) {
	flavor := defaultFlavor()
	flavor.Spec.TopologyName = nil
	nodes := []corev1.Node{*admissiontest.Node("cordoned", "cpu", "1").Cordoned().Node,
		*admissiontest.Node("terminating", "cpu", "1").Deleting(now).Node,
		*admissiontest.Node("lost", "cpu", "1").Tainted(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule).Node,
		*admissiontest.Node("open", "cpu", "1").Node}
	if got := usable(nodes, &flavor.Spec); len(got) != 1 || got[0].Name != "open" {
		t.Errorf("got %d usable nodes, want only the open one: %v", len(got), got)
	}
}

func TestExtendedResourcesBeyondTheAPILimitAreCut(t *testing.T) {
	n := admissiontest.Node("a", "cpu", "1")
	for i := range 80 {
		n.Node.Status.Allocatable[corev1.ResourceName(fmt.Sprintf("example.com/r%02d", i))] = resource.MustParse("1")
	}
	g := nodesCapacity.queue([]corev1.Node{*n.Node}, false).Spec.ResourceGroups[0]
	native := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}
	if len(g.CoveredResources) != 64 || len(g.Flavors[0].Resources) != 64 || !slices.IsSorted(g.CoveredResources) ||
		!sets.New(g.CoveredResources...).HasAll(native...) {
		t.Errorf("got %d quotas for the resources %v, want 64 by name, with %v among them", len(g.Flavors[0].Resources),
			g.CoveredResources, native)
	}
}

func TestTheCapacityIsAsConfigured(t *testing.T) {
	nodes := []corev1.Node{*admissiontest.Node("a", "cpu", "4", "nvidia.com/gpu", "8").Node}
	limitless := []string{"default: cpu=1E", "default: memory=1E", "default: nvidia.com/gpu=1E", "default: pods=1E"}
	asNodes := []string{"default: cpu=4", "default: memory=0", "default: nvidia.com/gpu=8", "default: pods=0"}
	for name, tc := range map[string]struct {
		given     config.DefaultQueue
		seen      bool
		want      []string
		onDemand  bool
		unlimited bool
	}{
		"nodes, none on demand": {config.DefaultQueue{Capacity: ptr.To(config.CapacityNodes),
			NodesOnDemand: ptr.To(config.NodesOnDemandDetect)}, false, asNodes, false, false},
		"nodes, on demand": {config.DefaultQueue{Capacity: ptr.To(config.CapacityNodes),
			NodesOnDemand: ptr.To(config.NodesOnDemandDetect)}, true, limitless, true, true},
		"nodes, on demand by configuration": {config.DefaultQueue{Capacity: ptr.To(config.CapacityNodes),
			NodesOnDemand: ptr.To(config.NodesOnDemandAlways)}, false, limitless, true, true},
		"nodes, with an autoscaler that is ignored": {config.DefaultQueue{Capacity: ptr.To(config.CapacityNodes),
			NodesOnDemand: ptr.To(config.NodesOnDemandNever)}, true, asNodes, false, false},
		"unlimited": {config.DefaultQueue{Capacity: ptr.To(config.CapacityUnlimited),
			NodesOnDemand: ptr.To(config.NodesOnDemandNever)}, true, limitless, false, true},
		"quantities": {config.DefaultQueue{Capacity: ptr.To(config.CapacityQuantities),
			Quantities: admissiontest.Quantities("cpu", "10"), NodesOnDemand: ptr.To(config.NodesOnDemandDetect)}, false,
			[]string{"default: cpu=10"}, false, false},
		"quantities with nodes on demand": {config.DefaultQueue{Capacity: ptr.To(config.CapacityQuantities),
			Quantities: admissiontest.Quantities("cpu", "10"), NodesOnDemand: ptr.To(config.NodesOnDemandDetect)}, true,
			[]string{"default: cpu=10"}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := capacityOf(&tc.given)
			got := c.queue(nodes, c.growing(tc.seen))
			admissiontest.Expect(t, "quota", tc.want, quotaOf(got))
			if onDemand := got.Annotations[muster.NodesOnDemandAnnotation] == "true"; onDemand != tc.onDemand {
				t.Errorf("nodes on demand = %v, want %v", onDemand, tc.onDemand)
			}
			if unlimited := got.Annotations[muster.UnlimitedAnnotation] == "true"; unlimited != tc.unlimited {
				t.Errorf("unlimited = %v, want %v", unlimited, tc.unlimited)
			}
		})
	}
}
