package placer

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestGatedPodsAreCounted checks that the metric counts the pods in the cache with the topology gate, whichever
// operator has seen them first.
func TestGatedPodsAreCounted(t *testing.T) {
	pod := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "of-another"}, {Name: kueue.TopologyGate}}
		change(p)
		return p
	}
	cache := fake.NewClientBuilder().WithScheme(newScheme(t)).WithIndex(&corev1.Pod{}, gatedIndex, isGated).WithObjects(
		pod("gated", func(*corev1.Pod) {}),
		pod("gated-too", func(*corev1.Pod) {}),
		pod("ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("other-gate", func(p *corev1.Pod) { p.Spec.SchedulingGates = p.Spec.SchedulingGates[:1] }),
		pod("no-gate", func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }),
	).Build()
	if got := countGated(cache); got != 2 {
		t.Errorf("countGated = %v, want 2", got)
	}
	unreadable := fake.NewClientBuilder().WithScheme(newScheme(t)).Build() // without the index, which makes lists fail
	if got := countGated(unreadable); !math.IsNaN(got) {
		t.Errorf("countGated = %v while the cache cannot be read, want NaN", got)
	}
}
