package scenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPodsOfAnAdmittedJobSetAreScheduledAsAGang: the pods of an admitted JobSet name a PodGroup whose minimum count is
// their number, and the PodGroup is deleted with the JobSet.
func TestPodsOfAnAdmittedJobSetAreScheduledAsAGang(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	js := w.gang("js", "gpu", 2, time.Hour)
	js.Spec.ReplicatedJobs[0].Replicas = 2
	w.Create(js)
	harness.Until(w.World, &corev1.PodList{}, "all four pods are bound", func(list *corev1.PodList) bool {
		bound := 0
		for _, pod := range list.Items {
			if pod.Spec.SchedulingGroup == nil || ptr.Deref(pod.Spec.SchedulingGroup.PodGroupName, "") != "js-workers" {
				t.Fatalf("pod %s has the scheduling group %+v, want PodGroup js-workers", pod.Name, pod.Spec.SchedulingGroup)
			}
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		return bound == 4
	})
	w.UntilGangs("js-workers: 4")
	if err := w.Client.Delete(t.Context(), js, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	w.UntilGangs()
}

// TestAReplacementPodDoesNotWaitForFinishedPods: kube-scheduler counts only pods that have not ended, so the minimum
// count of a gang must shrink when a pod succeeds. Otherwise a replacement for another pod would never be scheduled.
func TestAReplacementPodDoesNotWaitForFinishedPods(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	js := w.gang("js", "gpu", 3, time.Hour)
	js.Spec.ReplicatedJobs[0].Template.Spec.BackoffLimit = ptr.To[int32](10)
	w.Create(js)
	pods := w.untilBound("js-workers-0", 3)
	w.UntilGangs("js-workers: 3")
	w.PatchStatus(pods["0"], `{"status": {"phase": "Succeeded"}}`)
	w.UntilJob("js-workers-0", "has one succeeded pod", func(job *batchv1.Job) bool { return job.Status.Succeeded == 1 })
	if err := w.Client.Delete(t.Context(), pods["1"], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	harness.Until(w.World, &corev1.PodList{}, "the replacement pod is bound", func(list *corev1.PodList) bool {
		for _, pod := range list.Items {
			if pod.Labels[batchv1.JobCompletionIndexAnnotation] == "1" && pod.UID != pods["1"].UID && pod.Spec.NodeName != "" {
				return true
			}
		}
		return false
	})
	w.UntilGangs("js-workers: 2")
}

// untilBound waits until the Job has exactly that many running pods, and returns them by completion index.
func (w *world) untilBound(job string, count int) map[string]*corev1.Pod {
	w.Helper()
	var found map[string]*corev1.Pod
	harness.Until(w.World, &corev1.PodList{}, fmt.Sprintf("%d pods of %s run", count, job),
		func(list *corev1.PodList) bool {
			found = map[string]*corev1.Pod{}
			for i := range list.Items {
				if pod := &list.Items[i]; pod.Labels[batchv1.JobNameLabel] == job && pod.Status.Phase == corev1.PodRunning {
					found[pod.Labels[batchv1.JobCompletionIndexAnnotation]] = pod
				}
			}
			return len(found) == count
		})
	return found
}
