package placer

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestGatedPodsAreCounted, also those that a previous operator left waiting.
func TestGatedPodsAreCounted(t *testing.T) {
	pod := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "of-another"}, {Name: kueue.TopologyGate}}
		change(p)
		return p
	}
	cache := fake.NewClientBuilder().WithScheme(newScheme(t)).WithIndex(&corev1.Pod{}, gatedIndex, isGated).WithObjects(
		pod("waits", func(*corev1.Pod) {}),
		pod("waits-too", func(*corev1.Pod) {}),
		pod("has-ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("for-another", func(p *corev1.Pod) { p.Spec.SchedulingGates = p.Spec.SchedulingGates[:1] }),
		pod("for-nothing", func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }),
	).Build()
	if got := countGated(cache); got != 2 {
		t.Errorf("%v gated pods, want 2", got)
	}
	unfilled := fake.NewClientBuilder().WithScheme(newScheme(t)).Build() // one without the index cannot say
	if got := countGated(unfilled); !math.IsNaN(got) {
		t.Errorf("%v gated pods while the cache cannot be read, want NaN", got)
	}
}
