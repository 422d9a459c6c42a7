package managedqueues

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/podspec"
)

const (
	// coveredResourcesMax is the API's limit for the resources of a group.
	coveredResourcesMax = 64
	// unlimitedQuantity is more than any cluster has: an unlimited resource needs a nominal quota too.
	unlimitedQuantity = "1E"
)

// capacity is where the quota of the default queue comes from, by the configuration.
type capacity struct {
	from config.DefaultQueueCapacity
	// quantities are the quota if it comes from the configuration.
	quantities corev1.ResourceList
	onDemand   config.NodesOnDemand
}

func capacityOf(cfg *config.DefaultQueue) capacity {
	return capacity{from: *cfg.Capacity, quantities: cfg.Quantities, onDemand: *cfg.NodesOnDemand}
}

// detects reports whether the operator must find out whether a node autoscaler is installed. If not, it needs no
// right to read the signs of one.
func (c capacity) detects() bool { return c.onDemand == config.NodesOnDemandDetect }

// growing reports whether nodes are added on demand, given whether an autoscaler was detected.
func (c capacity) growing(autoscaler bool) bool {
	return c.onDemand == config.NodesOnDemandAlways || c.detects() && autoscaler
}

// queue returns the default ClusterQueue for the nodes, open to every namespace. If nodes are added on demand, the
// present nodes are no limit, and so the quota must not be one either.
func (c capacity) queue(nodes []corev1.Node, growing bool) *kueue.ClusterQueue {
	unlimited := c.from == config.CapacityUnlimited || c.from == config.CapacityNodes && growing
	quota := c.quantities
	if c.from != config.CapacityQuantities {
		quota = sumOf(nodes)
	}
	if unlimited {
		for name := range quota {
			quota[name] = resource.MustParse(unlimitedQuantity)
		}
	}
	out := &kueue.ClusterQueue{
		ObjectMeta: followingNodes(muster.DefaultQueue),
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups:    []kueue.ResourceGroup{groupOf(quota)},
		},
	}
	setMark(out, muster.NodesOnDemandAnnotation, growing)
	setMark(out, muster.UnlimitedAnnotation, unlimited)
	return out
}

// setMark sets an annotation of the queue to true or removes it, and reports whether that changed the queue.
func setMark(q *kueue.ClusterQueue, annotation string, holds bool) (changed bool) {
	had, has := q.Annotations[annotation]
	switch {
	case holds && had != "true":
		metav1.SetMetaDataAnnotation(&q.ObjectMeta, annotation, "true")
		return true
	case !holds && has:
		delete(q.Annotations, annotation)
		return true
	}
	return false
}

// sumOf returns the allocatable resources of all nodes together.
func sumOf(nodes []corev1.Node) corev1.ResourceList {
	sums := corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}, corev1.ResourcePods: {}}
	for i := range nodes {
		for name, amount := range nodes[i].Status.Allocatable {
			sum := sums[name]
			sum.Add(podspec.Bounded(amount))
			sums[name] = sum
		}
	}
	return sums
}

// groupOf returns a resource group with that quota in the flavor default, sorted by resource name. If there are more
// resources than a group can have, the last of the extended ones are left out, and never cpu, memory or pods.
func groupOf(quota corev1.ResourceList) kueue.ResourceGroup {
	group := kueue.ResourceGroup{Flavors: []kueue.FlavorQuotas{{Name: muster.DefaultQueue}}}
	for name := range quota {
		group.CoveredResources = append(group.CoveredResources, name)
	}
	slices.SortFunc(group.CoveredResources, func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(strings.Count(string(a), "/"), strings.Count(string(b), "/")), cmp.Compare(a, b))
	})
	group.CoveredResources = group.CoveredResources[:min(len(group.CoveredResources), coveredResourcesMax)]
	slices.Sort(group.CoveredResources)
	for _, name := range group.CoveredResources {
		group.Flavors[0].Resources = append(group.Flavors[0].Resources,
			kueue.ResourceQuota{Name: name, NominalQuota: canonical(quota[name])})
	}
	return group
}

// canonical returns the quantity in the form in which the API server returns it.
func canonical(q resource.Quantity) resource.Quantity { return resource.MustParse(q.String()) }

// followingNodes returns the metadata of an object that the operator keeps.
func followingNodes(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{muster.FollowsNodesLabel: "true"}}
}

// defaultTopology has nodes as its only level, for clusters of which no racks or zones are known.
func defaultTopology(name string) *kueue.Topology {
	return &kueue.Topology{
		ObjectMeta: followingNodes(name),
		Spec:       kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}}},
	}
}

// defaultFlavor places its pods on nodes. The API requires a node label with a topology: this is the one that all
// nodes have which can run the commands of the public APIs' manifests.
func defaultFlavor() *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{
		ObjectMeta: followingNodes(muster.DefaultQueue),
		Spec: kueue.ResourceFlavorSpec{
			NodeLabels:   map[string]string{corev1.LabelOSStable: "linux"},
			TopologyName: ptr.To(kueue.TopologyReference(muster.DefaultTopology)),
		},
	}
}

// isUnplacedDefault reports whether an existing flavor default was made by a version of the operator that did not place
// flavors on nodes: it says nothing about nodes. Its queue must be the operator's as well.
func isUnplacedDefault(f *kueue.ResourceFlavor) bool {
	s := &f.Spec
	return s.TopologyName == nil && len(s.NodeLabels) == 0 && len(s.NodeTaints) == 0 && len(s.Tolerations) == 0
}

// usable returns the flavor's nodes that accept pods with no tolerations but the flavor's.
//
// If the flavor is placed on nodes, a node that is closed for a time or being removed counts as well: placement keeps
// new pods off this node, and the jobs that still run there would otherwise be charged to the quota of the other nodes,
// which then stay empty. Without placement nothing but the quota keeps jobs from waiting for such a node.
func usable(nodes []corev1.Node, flavor *kueue.ResourceFlavorSpec) []corev1.Node {
	placed := flavor.TopologyName != nil
	var out []corev1.Node
	for i := range nodes {
		if node := &nodes[i]; takesPods(node, flavor.Tolerations) && (placed || isOpen(node)) &&
			hasAll(node.Labels, flavor.NodeLabels) {
			out = append(out, *node)
		}
	}
	return out
}

// takesPods reports whether the node, while it is open, accepts pods with the tolerations, or pods with the tolerations
// that request its devices.
func takesPods(node *corev1.Node, tolerations []corev1.Toleration) bool {
	_, blocked := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints,
		tolerations, func(t *corev1.Taint) bool {
			return repelsPods(t) && !closes(t) && !isForDevices(node, t)
		}, true)
	return !blocked
}

// isOpen reports whether the node accepts new pods: it is not cordoned, not being removed, and in order.
func isOpen(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && node.DeletionTimestamp.IsZero() &&
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return repelsPods(&t) && closes(&t) })
}

// closingTaints are set by Kubernetes, a cloud or an autoscaler, on nodes that are out of order, being removed or not
// set up yet. All others were set to reserve the node for certain pods.
var closingTaints = sets.New(
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable,
	corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure, corev1.TaintNodeOutOfService, "node.cloudprovider.kubernetes.io/uninitialized",
	"node.cloudprovider.kubernetes.io/shutdown", "karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler",
)

// closes reports whether the taint closes the node for a time, or because it is being removed.
func closes(t *corev1.Taint) bool { return closingTaints.Has(t.Key) }

func repelsPods(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// sameTaints reports whether both nodes have the same taints that repel pods.
func sameTaints(a, b *corev1.Node) bool {
	hard := func(node *corev1.Node) []corev1.Taint {
		return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return !repelsPods(&t) })
	}
	return slices.EqualFunc(hard(a), hard(b),
		func(x, y corev1.Taint) bool { return x.MatchTaint(&y) && x.Value == y.Value })
}

// isForDevices reports whether the taint reserves the node for pods that request its devices: the admission plugin
// ExtendedResourceToleration makes these tolerate the taint with the name of the resource.
func isForDevices(node *corev1.Node, t *corev1.Taint) bool {
	_, offers := node.Status.Allocatable[corev1.ResourceName(t.Key)]
	return offers
}

// hasAll reports whether a node's labels include the given ones.
func hasAll(have, labels map[string]string) bool {
	for key, value := range labels {
		if got, has := have[key]; !has || got != value {
			return false
		}
	}
	return true
}
