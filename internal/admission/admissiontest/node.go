package admissiontest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeBuilder builds a Node.
type NodeBuilder struct{ Node *corev1.Node }

// Node is one of Linux that says neither that it is ready nor that it is not.
func Node(name string, allocatable ...string) NodeBuilder {
	return NodeBuilder{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelHostname: name}}, Status: corev1.NodeStatus{Allocatable: Quantities(allocatable...)}}}
}

// Tainted gives it the taint t of the effect.
func (b NodeBuilder) Tainted(effect corev1.TaintEffect) NodeBuilder {
	b.Node.Spec.Taints = append(b.Node.Spec.Taints, corev1.Taint{Key: "t", Effect: effect})
	return b
}

// TaintedBy gives it a taint of the key that keeps pods away, as those of its devices do.
func (b NodeBuilder) TaintedBy(key string) NodeBuilder {
	b.Node.Spec.Taints = append(b.Node.Spec.Taints, corev1.Taint{Key: key, Value: "present", Effect: corev1.TaintEffectNoSchedule})
	return b
}

// Labeled gives it a label.
func (b NodeBuilder) Labeled(key, value string) NodeBuilder {
	b.Node.Labels[key] = value
	return b
}

// Cordoned takes no new pods.
func (b NodeBuilder) Cordoned() NodeBuilder {
	b.Node.Spec.Unschedulable = true
	return b
}

// Deleting is on its way out since then.
func (b NodeBuilder) Deleting(since time.Time) NodeBuilder {
	at := metav1.NewTime(since)
	b.Node.DeletionTimestamp = &at
	return b
}

// Ready says whether the node is ready, and since when.
func (b NodeBuilder) Ready(status corev1.ConditionStatus, since time.Time) NodeBuilder {
	b.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since)}}
	return b
}
