package simnode

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// write patches the status of the pod. The patch applies only to the version of the pod that was decided about: if the
// pod has changed since, or is gone, the patch does nothing, and the event of that change enqueues the pod again.
func (d *driver) write(ctx context.Context, pod *corev1.Pod, to decision) error {
	patch, err := statusPatch(pod, to.status)
	if err != nil {
		return fmt.Errorf("making the patch of the status: %w", err)
	}
	if !ended(&corev1.Pod{Status: *to.status}) {
		// Before the write, since its event may be handled before the write returns.
		d.steps.record(pod.UID, to.stepped)
	}
	_, err = d.client.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return d.outcome(pod, "writing the status", err)
}

// remove deletes the pod without a grace period.
func (d *driver) remove(ctx context.Context, pod *corev1.Pod) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	err := d.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
	return d.outcome(pod, "removing it", err)
}

// outcome returns the error of a write if the write must be retried. A write for an outdated version of the pod must
// not.
func (d *driver) outcome(pod *corev1.Pod, doing string, err error) error {
	if err == nil {
		d.writes.succeeded()
		return nil
	}
	// If the pod was deleted during the write, its event has been handled already, and nothing else would forget it.
	current, found, _ := d.pods.GetStore().GetByKey(keyOf(pod).String())
	if !found || current.(*corev1.Pod).UID != pod.UID {
		d.forget(pod.UID)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// statusPatch returns the difference between the pod's status and the wanted one as a patch, as the kubelet sends it,
// with the pod's resourceVersion as a precondition.
func statusPatch(pod *corev1.Pod, want *corev1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(corev1.Pod{Status: pod.Status})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Status:     *want,
	})
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
}

// writeLog reports failing writes once when they start to fail, rather than for each of thousands of pods, and once
// when they succeed again.
type writeLog struct {
	logf func(format string, args ...any)

	mu      sync.Mutex
	failing bool
}

func (w *writeLog) failed(pod types.NamespacedName, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.failing {
		w.failing = true
		w.logf("simulated pod %s: %v; this and what else fails is tried again", pod, err)
	}
}

func (w *writeLog) succeeded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing {
		w.failing = false
		w.logf("simulated pods: writes succeed again")
	}
}
