package watching

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeGained: a node gains what lets it take more pods; losses and heartbeats are no gain.
func TestNodeGained(t *testing.T) {
	node := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4")}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		change(n)
		return n
	}
	for name, tc := range map[string]struct {
		change     func(*corev1.Node)
		gain, loss bool
	}{
		"cordoned": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, false, true},
		"tainted": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		}, false, true},
		"unready":   {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, false, true},
		"larger":    {func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("8") }, true, false},
		"a device":  {func(n *corev1.Node) { n.Status.Allocatable["gpu"] = resource.MustParse("1") }, true, false},
		"labelled":  {func(n *corev1.Node) { n.Labels["pool"] = "b" }, true, true},
		"heartbeat": {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() }, false, false},
	} {
		plain, changed := node(func(*corev1.Node) {}), node(tc.change)
		if got := nodeGained(plain, changed); got != tc.gain {
			t.Errorf("%s: gain %v, want %v", name, got, tc.gain)
		}
		if got := nodeGained(changed, plain); got != tc.loss {
			t.Errorf("no longer %s: gain %v, want %v", name, got, tc.loss)
		}
	}
}
