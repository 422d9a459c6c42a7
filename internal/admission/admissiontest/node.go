package admissiontest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeBuilder builds a Node.
type NodeBuilder struct{ Node *corev1.Node }

// Node returns a builder of a Linux node without a Ready condition.
func Node(name string, allocatable ...string) NodeBuilder {
	return NodeBuilder{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Allocatable: Quantities(allocatable...)}}}
}

// Tainted adds a taint.
func (n NodeBuilder) Tainted(key string, effect corev1.TaintEffect) NodeBuilder {
	n.Node.Spec.Taints = append(n.Node.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	return n
}

// Labeled adds a label.
func (n NodeBuilder) Labeled(key, value string) NodeBuilder {
	n.Node.Labels[key] = value
	return n
}

// Cordoned makes the node unschedulable.
func (n NodeBuilder) Cordoned() NodeBuilder {
	n.Node.Spec.Unschedulable = true
	return n
}

// Deleting makes the node terminating since then.
func (n NodeBuilder) Deleting(since time.Time) NodeBuilder {
	at := metav1.NewTime(since)
	n.Node.DeletionTimestamp = &at
	return n
}

// Ready sets the Ready condition and its transition time.
func (n NodeBuilder) Ready(status corev1.ConditionStatus, since time.Time) NodeBuilder {
	n.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status,
		LastTransitionTime: metav1.NewTime(since)}}
	return n
}
