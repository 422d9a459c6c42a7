package flavor

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/quota"
)

// Flavor is a ResourceFlavor as far as a choice depends on it.
type Flavor struct {
	Name        string
	NodeLabels  map[string]string
	NodeTaints  []corev1.Taint
	Tolerations []corev1.Toleration
}

// Group is a set of resources that a queue serves together: all of a pod set's
// resources in a group come from the same flavor.
type Group struct {
	Resources []string
	// Flavors are in the order in which they are tried.
	Flavors []string
}

// PodSet is a number of equal pods.
type PodSet struct {
	Name  string
	Count int32
	// PerPod is what one pod requests, in amounts of package quota.
	PerPod map[string]int64
	// Tolerations, NodeSelector and Affinity are the pod template's.
	Tolerations  []corev1.Toleration
	NodeSelector map[string]string
	Affinity     *corev1.NodeAffinity
}

// Assignment is the choice for one pod set.
type Assignment struct {
	PodSet string
	Count  int32
	// Flavors and Usage have one entry a resource; Usage is of all pods together.
	Flavors map[string]string
	Usage   map[string]int64
}

// Room answers how much quota is left for a workload.
type Room interface {
	// Available is what may be taken now, borrowed included.
	Available(quota.FlavorResource) int64
	// Capacity is what could be taken if nobody used anything.
	Capacity(quota.FlavorResource) int64
}
