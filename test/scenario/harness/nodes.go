package harness

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node creates a ready node for the test alone, and returns its full name, which begins with the namespace. With the
// label muster.dev/simulated its pods run.
func (w *World) Node(name string, labels map[string]string, allocatable corev1.ResourceList,
	taints ...corev1.Taint) string {
	w.Helper()
	fullName := w.Namespace + "-" + name
	all := map[string]string{corev1.LabelHostname: fullName, corev1.LabelOSStable: "linux"}
	maps.Copy(all, labels)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fullName, Labels: all},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{
			Capacity: allocatable, Allocatable: allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: fullName}},
		},
	}
	w.Shared(node)
	// Remove the not-ready taint that the API server adds to every new node.
	w.Change(node, func() { node.Spec.Taints = taints })
	return fullName
}
