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
				t.Fatalf("%s is of the group %+v", pod.Name, pod.Spec.SchedulingGroup)
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

// TestAReplacementPodDoesNotWaitForFinishedPods: kube-scheduler counts only pods
// that live, so a gang must not ask for those that have ended well.
func TestAReplacementPodDoesNotWaitForFinishedPods(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	js := w.gang("js", "gpu", 3, time.Hour)
	js.Spec.ReplicatedJobs[0].Template.Spec.BackoffLimit = ptr.To[int32](10)
	w.Create(js)
	pods := w.untilBound("js-workers-0", 3)
	w.UntilGangs("js-workers: 3")
	w.PatchStatus(pods["0"], `{"status": {"phase": "Succeeded"}}`)
	w.UntilJob("js-workers-0", "has one done", func(job *batchv1.Job) bool { return job.Status.Succeeded == 1 })
	if err := w.Client.Delete(t.Context(), pods["1"], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	harness.Until(w.World, &corev1.PodList{}, "the pod that came anew is bound", func(list *corev1.PodList) bool {
		for _, pod := range list.Items {
			if pod.Labels[batchv1.JobCompletionIndexAnnotation] == "1" && pod.UID != pods["1"].UID && pod.Spec.NodeName != "" {
				return true
			}
		}
		return false
	})
	w.UntilGangs("js-workers: 2")
}

// untilBound waits until so many live pods of the Job are bound, and gives them by index.
func (w *world) untilBound(job string, count int) map[string]*corev1.Pod {
	w.Helper()
	var found map[string]*corev1.Pod
	harness.Until(w.World, &corev1.PodList{}, fmt.Sprintf("%d pods of %s run", count, job), func(list *corev1.PodList) bool {
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
