package harness

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Job returns a batch Job with that many pods, without requests, in the LocalQueue.
func (w *World) Job(name, queue string, pods int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{kueue.QueueLabel: queue}},
		Spec: batchv1.JobSpec{
			Parallelism: &pods, Completions: &pods,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "example.com/trainer"}},
			}},
		},
	}
}

// UntilJob waits until the condition holds for the Job of this name, and returns it.
func (w *World) UntilJob(name, what string, holds func(*batchv1.Job) bool) *batchv1.Job {
	w.Helper()
	return UntilOne(w, &batchv1.JobList{}, name, what, holds)
}

// Running reports whether a Job has that many active pods, ready or not.
func Running(pods int32) func(*batchv1.Job) bool {
	return func(job *batchv1.Job) bool { return !ptr.Deref(job.Spec.Suspend, false) && job.Status.Active == pods }
}

// Stopped reports whether a Job is suspended and has no pods.
func Stopped(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.Suspend, false) && job.Status.Active == 0 && ptr.Deref(job.Status.Terminating, 0) == 0
}

// UntilHeld waits until the API server suspends such a Job at its creation or, if held is false, no longer does:
// policies and webhooks take effect asynchronously. It uses dry runs.
func (w *World) UntilHeld(job *batchv1.Job, held bool) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, Patience,
		true, func(ctx context.Context) (bool, error) {
			created := job.DeepCopy()
			err := w.Client.Create(ctx, created, client.DryRunAll)
			return ptr.Deref(created.Spec.Suspend, false) == held, err
		})
	if err != nil {
		w.Fatalf("waiting until %s would be created with suspend %t: %v", job.Name, held, err)
	}
}

// UntilPodsOf waits until the Job has that many pods that have not ended and are not terminating, and returns them.
func (w *World) UntilPodsOf(job string, count int) (pods []corev1.Pod) {
	w.Helper()
	Until(w, &corev1.PodList{}, fmt.Sprintf("%s has %d pods", job, count), func(list *corev1.PodList) bool {
		pods = nil
		for _, pod := range list.Items {
			ended := pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded ||
				pod.Status.Phase == corev1.PodFailed
			if pod.Labels[batchv1.JobNameLabel] == job && !ended {
				pods = append(pods, pod)
			}
		}
		return len(pods) == count
	})
	return pods
}
