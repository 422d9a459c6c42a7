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
	return NodeBuilder{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelHostname: name}}, Status: corev1.NodeStatus{Allocatable: Quantities(allocatable...)}}}
}

// Tainted adds the taint with the key t and the effect.
func (b NodeBuilder) Tainted(effect corev1.TaintEffect) NodeBuilder {
	b.Node.Spec.Taints = append(b.Node.Spec.Taints, corev1.Taint{Key: "t", Effect: effect})
	return b
}

// TaintedBy adds a NoSchedule taint with the key, as nodes with devices have.
func (b NodeBuilder) TaintedBy(key string) NodeBuilder {
	b.Node.Spec.Taints = append(b.Node.Spec.Taints, corev1.Taint{Key: key, Value: "present", Effect: corev1.TaintEffectNoSchedule})
	return b
}

// Labeled adds a label.
func (b NodeBuilder) Labeled(key, value string) NodeBuilder {
	b.Node.Labels[key] = value
	return b
}

// Cordoned makes the node unschedulable.
func (b NodeBuilder) Cordoned() NodeBuilder {
	b.Node.Spec.Unschedulable = true
	return b
}

// Deleting makes the node terminating since then.
func (b NodeBuilder) Deleting(since time.Time) NodeBuilder {
	at := metav1.NewTime(since)
	b.Node.DeletionTimestamp = &at
	return b
}

// Ready sets the Ready condition and its transition time.
func (b NodeBuilder) Ready(status corev1.ConditionStatus, since time.Time) NodeBuilder {
	b.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since)}}
	return b
}
