package view

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// waitsForNewNodes reports whether the Workload holds quota, in a queue whose nodes are provisioned on demand, of a
// flavor that is placed on nodes, but has no places, and whether some of its pods have no node yet.
func waitsForNewNodes(snapshot *Snapshot, workload *kueue.Workload) bool {
	hasNoNode := func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" }
	if len(snapshot.Pods) > 0 && !slices.ContainsFunc(snapshot.Pods, hasNoNode) {
		return false
	}
	if workload.Status.Admission == nil || !onDemand(snapshot, string(workload.Status.Admission.ClusterQueue)) {
		return false
	}
	return slices.ContainsFunc(workload.Status.Admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool {
		return a.TopologyAssignment == nil &&
			slices.ContainsFunc(snapshot.ResourceFlavors, func(f kueue.ResourceFlavor) bool {
				return f.Spec.TopologyName != nil &&
					slices.Contains(slices.Collect(maps.Values(a.Flavors)), kueue.ResourceFlavorReference(f.Name))
			})
	})
}

func onDemand(snapshot *Snapshot, queue string) bool {
	q := snapshot.clusterQueue(queue)
	return q != nil && q.Annotations[muster.NodesOnDemandAnnotation] == "true"
}
