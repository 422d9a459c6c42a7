// Package deadlines tests, on the embedded control plane, what an operator does whose configuration is in a hurry.
package deadlines

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

const hurry = `
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
waitForPodsReady:
  timeout: 1s
  recoveryTimeout: 1s
  requeuingStrategy:
    backoffBaseSeconds: 1
    backoffLimitCount: 1
objectRetentionPolicies:
  workloads:
    afterFinished: 1s
    afterDeactivatedByMuster: 1s
`

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{Operator: true, Config: hurry}) }

// patience bounds every wait, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// world is a namespace with the LocalQueue q, which leads to a ClusterQueue without limits.
type world struct {
	*testing.T
	client    client.WithWatch
	namespace string
}

func newWorld(t *testing.T) *world {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, client: c, namespace: cluster.Namespace(t)}
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}}}
	w.create(queue)
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), queue); err != nil {
			t.Errorf("deleting the ClusterQueue: %v", err)
		}
	})
	w.create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "q"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.namespace)}})
	return w
}

func (w *world) create(o client.Object) {
	w.Helper()
	if err := w.client.Create(w.Context(), o); err != nil {
		w.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

// submit creates a Workload of one pod that asks for nothing.
func (w *world) submit(name string) *kueue.Workload {
	w.Helper()
	o := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: kueue.WorkloadSpec{QueueName: "q", PodSets: []kueue.PodSet{{
		Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer"}}}},
	}}}}
	w.create(o)
	return o
}

// report sets a condition as the controller of the Workload would.
func (w *world) report(name, kind string, status metav1.ConditionStatus, reason string) {
	w.Helper()
	var seen kueue.Workload
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &seen); err != nil {
		w.Fatal(err)
	}
	after := seen.DeepCopy()
	meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
	if err := w.client.Status().Patch(w.Context(), after, client.MergeFrom(&seen)); err != nil {
		w.Fatalf("reporting %s of %s: %v", kind, name, err)
	}
}

// until waits, by watching, until the condition holds for the Workload, nil where there is none.
func (w *world) until(name, what string, holds func(*kueue.Workload) bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	only := client.MatchingFields{"metadata.name": name}
	for {
		var list kueue.WorkloadList
		if err := w.client.List(ctx, &list, client.InNamespace(w.namespace), only); err != nil {
			w.Fatalf("waiting until %s %s: %v", name, what, err)
		}
		var last *kueue.Workload
		if len(list.Items) > 0 {
			last = &list.Items[0]
		}
		if holds(last) {
			return
		}
		events, err := w.client.Watch(ctx, &list, client.InNamespace(w.namespace), only, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			w.Fatalf("waiting until %s %s: %v", name, what, err)
		}
		event := <-events.ResultChan()
		events.Stop()
		if ctx.Err() != nil {
			w.Fatalf("waited %s until %s %s; it was %+v", patience, name, what, last)
		}
		if event.Type == watch.Error {
			continue // the list has the truth
		}
	}
}

func is(w *kueue.Workload, kind string, status metav1.ConditionStatus, reason string) bool {
	if w == nil {
		return false
	}
	c := meta.FindStatusCondition(w.Status.Conditions, kind)
	return c != nil && c.Status == status && c.Reason == reason
}

func runs(w *kueue.Workload) bool {
	return is(w, kueue.WorkloadAdmitted, "True", kueue.WorkloadAdmittedReason) && !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted)
}

func gone(w *kueue.Workload) bool { return w == nil }

func TestWhoIsNeverReadyIsTriedAgainThenDeactivatedAndInTheEndDeleted(t *testing.T) {
	w := newWorld(t)
	w.submit("a")
	w.until("a", "runs", runs)
	w.report("a", kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForStart)
	w.until("a", "is tried again", func(o *kueue.Workload) bool {
		return runs(o) && is(o, kueue.WorkloadRequeued, "True", kueue.WorkloadBackoffFinished) &&
			ptr.Deref(o.Status.RequeueState.Count, 0) == 1 && o.Status.RequeueState.RequeueAt == nil
	})
	w.report("a", kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForStart)
	w.until("a", "is deactivated", func(o *kueue.Workload) bool {
		return is(o, kueue.WorkloadEvicted, "True", kueue.WorkloadDeactivatedDueTo+kueue.WorkloadRequeuingLimitExceeded) &&
			!*o.Spec.Active && o.Status.Admission == nil && o.Status.RequeueState == nil
	})
	w.until("a", "is deleted", gone)
}

func TestWhoLosesAPodAndDoesNotRecoverIsEvicted(t *testing.T) {
	w := newWorld(t)
	w.submit("a")
	w.until("a", "runs", runs)
	w.report("a", kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted)
	w.report("a", kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForRecovery)
	w.until("a", "is evicted for it", func(o *kueue.Workload) bool {
		return o.Status.SchedulingStats != nil && o.Status.SchedulingStats.Evictions[0] == kueue.WorkloadSchedulingStatsEviction{
			Reason: kueue.WorkloadEvictedByPodsReadyTimeout, UnderlyingCause: kueue.WorkloadWaitForRecovery, Count: 1}
	})
}

func TestWhatIsOverIsDeletedInTime(t *testing.T) {
	w := newWorld(t)
	w.submit("a")
	w.until("a", "runs", runs)
	w.report("a", kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded)
	w.until("a", "is deleted", gone)
}
