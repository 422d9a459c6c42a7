package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestQueueingStrategies: 6 of 8 GPUs are in use, the Workload at the head of the queue needs 4, and the one behind it
// needs 2, which are free.
func TestQueueingStrategies(t *testing.T) {
	setUp := func(t *testing.T, s kueue.QueueingStrategy) *world {
		w := newWorld(t)
		w.gpuQueue("gpu", 8, func(q *kueue.ClusterQueueSpec) { q.QueueingStrategy = s })
		w.Create(w.bare("first", "gpu", 6))
		w.UntilWorkload("first", "runs", runs)
		w.Create(w.bare("head", "gpu", 4))
		w.untilPending("head", kueue.WorkloadWaitingForQuota, "2 more needed")
		w.Create(w.bare("tail", "gpu", 2)) // if both were created in the same second, the queue orders them by name
		return w
	}
	t.Run("overtaking under BestEffortFIFO", func(t *testing.T) {
		w := setUp(t, kueue.BestEffortFIFO)
		w.UntilWorkload("tail", "runs", runs)
		w.finish("first")
		w.UntilWorkload("head", "runs", runs)
	})
	t.Run("waiting under StrictFIFO", func(t *testing.T) {
		w := setUp(t, kueue.StrictFIFO)
		w.untilPending("tail", kueue.WorkloadWaitingForQuota,
			"waits behind the head of ClusterQueue "+w.Namespace+", which is StrictFIFO")
		w.finish("first")
		w.UntilWorkload("head", "runs", runs)
		w.UntilWorkload("tail", "runs", runs)
	})
	t.Run("change to BestEffortFIFO", func(t *testing.T) {
		w := setUp(t, kueue.StrictFIFO)
		w.untilPending("tail", kueue.WorkloadWaitingForQuota, "waits behind the head")
		w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) { q.Spec.QueueingStrategy = kueue.BestEffortFIFO })
		w.UntilWorkload("tail", "runs", runs)
	})
}

// TestWorkloadsOutsideTheNamespaceSelectorWait: Workloads wait as inadmissible while their namespace does not match the
// selector of their ClusterQueue, and are reconsidered when the labels of the namespace or the selector change. Running
// Workloads continue.
func TestWorkloadsOutsideTheNamespaceSelectorWait(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8, func(q *kueue.ClusterQueueSpec) {
		q.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": w.Namespace}}
	})
	label := func(patch string) {
		w.Patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}},
			`{"metadata":{"labels":{"team":`+patch+`}}}`)
	}
	const mismatch = "Workload namespace doesn't match ClusterQueue selector"
	w.Create(w.bare("a", "gpu", 1))
	w.untilPending("a", kueue.WorkloadInadmissible, mismatch)
	label(`"` + w.Namespace + `"`)
	w.UntilWorkload("a", "runs", runs)
	w.Create(w.bare("b", "gpu", 8)) // which does not fit beside a, and is pending before the label is removed
	w.untilPending("b", kueue.WorkloadWaitingForQuota, "1 more needed")
	label("null")
	w.untilPending("b", kueue.WorkloadInadmissible, mismatch)
	w.Create(w.bare("c", "gpu", 1)) // which fits
	w.untilPending("c", kueue.WorkloadInadmissible, mismatch)
	w.UntilWorkload("a", "still runs", runs)
	w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) { q.Spec.NamespaceSelector = &metav1.LabelSelector{} })
	w.UntilWorkload("c", "runs", runs)
}
