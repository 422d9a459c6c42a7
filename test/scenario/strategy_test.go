package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

func (w *world) clusterQueue() *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
}

// strategy has the world's queue go by it.
func (w *world) strategy(s kueue.QueueingStrategy) {
	w.Helper()
	change(w, w.clusterQueue(), func(q *kueue.ClusterQueue) { q.Spec.QueueingStrategy = s })
}

// TestWhoFitsBehindAHeadThatDoesNot: 6 of 8 GPUs are in use, the head needs 4, and somebody behind it needs 2.
func TestWhoFitsBehindAHeadThatDoesNot(t *testing.T) {
	begin := func(t *testing.T, s kueue.QueueingStrategy) *world {
		w := newWorld(t)
		w.gpuQueue("gpu", 8)
		w.strategy(s)
		w.Create(w.bare("first", "gpu", 6))
		w.untilWorkload("first", "runs", runs)
		w.Create(w.bare("head", "gpu", 4))
		w.untilWaits("head", kueue.WorkloadWaitingForQuota, "2 more needed")
		w.Create(w.bare("tail", "gpu", 2)) // of one second with the head it goes by name
		return w
	}
	t.Run("goes first under BestEffortFIFO", func(t *testing.T) {
		w := begin(t, kueue.BestEffortFIFO)
		w.untilWorkload("tail", "runs", runs)
		w.finish("first")
		w.untilWorkload("head", "runs", runs)
	})
	t.Run("waits behind it under StrictFIFO", func(t *testing.T) {
		w := begin(t, kueue.StrictFIFO)
		w.untilWaits("tail", kueue.WorkloadWaitingForQuota, "waits behind the head of ClusterQueue "+w.Namespace+", which is StrictFIFO")
		w.finish("first")
		w.untilWorkload("head", "runs", runs)
		w.untilWorkload("tail", "runs", runs)
	})
	t.Run("goes once the queue is StrictFIFO no more", func(t *testing.T) {
		w := begin(t, kueue.StrictFIFO)
		w.untilWaits("tail", kueue.WorkloadWaitingForQuota, "waits behind the head")
		w.strategy(kueue.BestEffortFIFO)
		w.untilWorkload("tail", "runs", runs)
	})
}

// TestANamespaceThatAQueueDoesNotAccept: its Workloads are told so, and wait no longer when its labels are others.
func TestANamespaceThatAQueueDoesNotAccept(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	change(w, w.clusterQueue(), func(q *kueue.ClusterQueue) {
		q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": w.Namespace}}
	})
	label := func(patch string) {
		w.Patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}, `{"metadata":{"labels":{"team":`+patch+`}}}`)
	}
	const refused = "Workload namespace doesn't match ClusterQueue selector"
	w.Create(w.bare("a", "gpu", 1))
	w.untilWaits("a", kueue.WorkloadInadmissible, refused)
	label(`"` + w.Namespace + `"`)
	w.untilWorkload("a", "runs", runs)
	label("null")
	w.Create(w.bare("b", "gpu", 1))
	w.untilWaits("b", kueue.WorkloadInadmissible, refused)
	w.untilWorkload("a", "runs on", runs)
	all := w.clusterQueue()
	w.Change(all, func() { all.Spec.NamespaceSelector = &metav1.LabelSelector{} })
	w.untilWorkload("b", "runs", runs)
}
