package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestQueueingStrategies: 6 of 8 GPUs are in use, the head needs 4, and somebody behind it needs 2.
func TestQueueingStrategies(t *testing.T) {
	begin := func(t *testing.T, s kueue.QueueingStrategy) *world {
		w := newWorld(t)
		w.gpuQueue("gpu", 8, func(q *kueue.ClusterQueueSpec) { q.QueueingStrategy = s })
		w.Create(w.bare("first", "gpu", 6))
		w.UntilWorkload("first", "runs", runs)
		w.Create(w.bare("head", "gpu", 4))
		w.untilPending("head", kueue.WorkloadWaitingForQuota, "2 more needed")
		w.Create(w.bare("tail", "gpu", 2)) // of one second with the head it goes by name
		return w
	}
	t.Run("goes first under BestEffortFIFO", func(t *testing.T) {
		w := begin(t, kueue.BestEffortFIFO)
		w.UntilWorkload("tail", "runs", runs)
		w.finish("first")
		w.UntilWorkload("head", "runs", runs)
	})
	t.Run("waits behind it under StrictFIFO", func(t *testing.T) {
		w := begin(t, kueue.StrictFIFO)
		w.untilPending("tail", kueue.WorkloadWaitingForQuota, "waits behind the head of ClusterQueue "+w.Namespace+", which is StrictFIFO")
		w.finish("first")
		w.UntilWorkload("head", "runs", runs)
		w.UntilWorkload("tail", "runs", runs)
	})
	t.Run("goes once the queue is StrictFIFO no more", func(t *testing.T) {
		w := begin(t, kueue.StrictFIFO)
		w.untilPending("tail", kueue.WorkloadWaitingForQuota, "waits behind the head")
		w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) { q.Spec.QueueingStrategy = kueue.BestEffortFIFO })
		w.UntilWorkload("tail", "runs", runs)
	})
}

// TestWorkloadsOutsideTheNamespaceSelectorWait: its Workloads are told so, and wait no longer when its labels are
// others.
func TestWorkloadsOutsideTheNamespaceSelectorWait(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8, func(q *kueue.ClusterQueueSpec) {
		q.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": w.Namespace}}
	})
	label := func(patch string) {
		w.Patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}, `{"metadata":{"labels":{"team":`+patch+`}}}`)
	}
	const refused = "Workload namespace doesn't match ClusterQueue selector"
	w.Create(w.bare("a", "gpu", 1))
	w.untilPending("a", kueue.WorkloadInadmissible, refused)
	label(`"` + w.Namespace + `"`)
	w.UntilWorkload("a", "runs", runs)
	w.Create(w.bare("b", "gpu", 8)) // which does not fit beside a: who is created as the label goes may be seen before that
	w.untilPending("b", kueue.WorkloadWaitingForQuota, "1 more needed")
	label("null")
	w.untilPending("b", kueue.WorkloadInadmissible, refused)
	w.Create(w.bare("c", "gpu", 1)) // which fits
	w.untilPending("c", kueue.WorkloadInadmissible, refused)
	w.UntilWorkload("a", "runs on", runs)
	w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) { q.Spec.NamespaceSelector = &metav1.LabelSelector{} })
	w.UntilWorkload("c", "runs", runs)
}
