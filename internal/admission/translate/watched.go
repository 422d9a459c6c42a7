package translate

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Watched are the kinds whose changes the engine is told about.
var Watched = []client.Object{
	&corev1.Namespace{}, &corev1.LimitRange{}, &nodev1.RuntimeClass{}, &kueue.AdmissionCheck{},
	&kueue.ResourceFlavor{}, &kueue.Cohort{}, &kueue.ClusterQueue{}, &kueue.LocalQueue{}, &kueue.Workload{},
	&kueue.Topology{}, &corev1.Node{}, &corev1.Pod{},
}

// ChangeMatters reports whether an update matters to the engine. Of objects that configure it only the spec counts:
// most updates are status writes of the operator itself.
func ChangeMatters(before, after client.Object) bool {
	switch after := after.(type) {
	case *corev1.Pod:
		return podChangeMatters(before.(*corev1.Pod), after)
	case *corev1.Node:
		return nodeChangeMatters(before.(*corev1.Node), after)
	case *kueue.ClusterQueue:
		return before.GetGeneration() != after.Generation || before.GetUID() != after.UID ||
			!maps.Equal(before.GetLabels(), after.Labels) || !maps.Equal(before.GetAnnotations(), after.Annotations)
	case *kueue.LocalQueue:
		return before.GetGeneration() != after.Generation || before.GetUID() != after.UID ||
			!maps.Equal(before.GetAnnotations(), after.Annotations)
	case *kueue.ResourceFlavor, *kueue.Cohort, *kueue.Topology:
		return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID()
	}
	return true
}
