package placement

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// wholeJob returns a Job of four pods of four GPUs each that restarts as a whole.
func (w *world) wholeJob(name string) *batchv1.Job {
	spec := w.gang(name, "q", 4, 4, time.Hour).Spec.ReplicatedJobs[0].Template.Spec
	return &batchv1.Job{Spec: spec,
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{kueue.QueueLabel: "q"},
			Annotations: map[string]string{muster.RestartWholeAnnotation: "true"}}}
}

// untilPartlyDone ends the pod of index 0 of the Job once all its pods run, and waits until its quota is returned. It
// returns the Workload.
func (w *world) untilPartlyDone(job string) *kueue.Workload {
	w.Helper()
	for _, pod := range w.untilRunning(job, 4) {
		if indexOf(pod) == "0" {
			w.EndPod(pod, 0)
		}
	}
	return w.UntilWorkloadOf(job, "has a reclaimable pod", func(wl *kueue.Workload) bool {
		return len(wl.Status.ReclaimablePods) == 1 && wl.Status.ReclaimablePods[0].Count == 1
	})
}

func indexOf(pod corev1.Pod) string { return pod.Labels[batchv1.JobCompletionIndexAnnotation] }

// isForAllPods reports whether the Workload asks for all its pods, and fails the test if it holds no quota and does
// not.
func (w *world) isForAllPods(wl *kueue.Workload) bool {
	if wl.Status.Admission == nil && len(wl.Status.ReclaimablePods) > 0 {
		w.Errorf("the Workload waits for all its pods less %v", wl.Status.ReclaimablePods)
	}
	return len(wl.Status.ReclaimablePods) == 0
}

// TestAPartlyDoneJobRunsAgainAsAWhole on nodes that its four pods fill. Index 0 is done when the Job is stopped; it is
// admitted for four pods, each of which has a place, and they complete it. It is stopped twice: the second time, its
// user lets it queue again at once.
func TestAPartlyDoneJobRunsAgainAsAWhole(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 2)
	w.queue()
	w.Create(w.wholeJob("job"))
	wl := w.untilPartlyDone("job")
	w.Patch(wl.DeepCopy(), `{"spec": {"active": false}}`)
	w.UntilWorkloadOf("job", "has released its quota",
		func(wl *kueue.Workload) bool { return w.isForAllPods(wl) && wl.Status.Admission == nil })
	stopped := w.UntilJob("job", "has no index that is done",
		func(job *batchv1.Job) bool { return job.Status.CompletedIndexes == "" && job.Status.Succeeded == 0 })
	if _, started := stopped.Annotations[muster.BeforeAdmissionAnnotation]; started || !*stopped.Spec.Suspend {
		t.Errorf("the Job is suspended: %t, with annotations %v; want it restored", *stopped.Spec.Suspend,
			stopped.Annotations)
	}
	w.UntilEvent("job", "RestartsWhole")
	w.Patch(wl.DeepCopy(), `{"spec": {"active": true}}`)

	second := w.untilPartlyDone("job")
	w.Patch(second.DeepCopy(), `{"spec": {"active": false}}`)
	w.UntilWorkloadOf("job", "is evicted", func(wl *kueue.Workload) bool {
		return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadEvicted)
	})
	w.Patch(second.DeepCopy(), `{"spec": {"active": true}}`)
	wl = w.UntilWorkloadOf("job", "is admitted again for all pods", func(wl *kueue.Workload) bool {
		return w.isForAllPods(wl) && admitted(wl) && !meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadEvicted)
	})
	pods, places := w.untilRunning("job", 4), map[string]int32{}
	for _, node := range nodesByRank(wl) {
		places[node]++
	}
	if diff := cmp.Diff(places, nodesOf(pods)); diff != "" {
		t.Errorf("pods on each node (-places +got):\n%s", diff)
	}
	for _, pod := range pods {
		w.EndPod(pod, 0)
	}
	done := w.UntilJob("job", "is complete",
		func(job *batchv1.Job) bool { return len(job.Status.Conditions) > 0 && job.Status.CompletionTime != nil })
	if done.Status.Succeeded != 4 || done.Status.CompletedIndexes != "0-3" {
		t.Errorf("%d pods have succeeded, of the indexes %q; want 4 of 0-3", done.Status.Succeeded,
			done.Status.CompletedIndexes)
	}
}

// TestAJobIsEvictedAgainWhileItRestarts: whoever deactivates and activates its Workload again and again, while its pods
// stop, its indexes are made new and it is admitted, gets a Job that runs all its pods in the end.
func TestAJobIsEvictedAgainWhileItRestarts(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 2)
	w.queue()
	w.Create(w.wholeJob("job"))
	wl := w.untilPartlyDone("job")
	for range 3 {
		w.Patch(wl.DeepCopy(), `{"spec": {"active": false}}`)
		w.UntilWorkloadOf("job", "has released its quota",
			func(wl *kueue.Workload) bool { return w.isForAllPods(wl) && wl.Status.Admission == nil })
		w.Patch(wl.DeepCopy(), `{"spec": {"active": true}}`)
		w.UntilWorkloadOf("job", "is admitted again",
			func(wl *kueue.Workload) bool { return w.isForAllPods(wl) && admitted(wl) })
	}
	indexes := map[string]bool{}
	for _, pod := range w.untilRunning("job", 4) {
		indexes[indexOf(pod)] = true
	}
	if len(indexes) != 4 {
		t.Errorf("the pods have the indexes %v, want all of 0 to 3", indexes)
	}
}

// TestAPartlyDoneJobSetRunsAgainAsAWhole: one of its three Jobs has succeeded, and one pod of another, when it is
// evicted. It is admitted for all nine pods, and no Job or pod that was done is left.
func TestAPartlyDoneJobSetRunsAgainAsAWhole(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 3)
	w.queue()
	js := w.gang("js", "q", 3, 2, time.Hour)
	js.Annotations = map[string]string{muster.RestartWholeAnnotation: "true"}
	js.Spec.ReplicatedJobs[0].Replicas = 3
	w.Create(js)
	first := map[string]corev1.Pod{}
	for name, pod := range w.untilRunning("js", 9) {
		if job := pod.Labels[batchv1.JobNameLabel]; job == "js-workers-0" || job == "js-workers-1" && indexOf(pod) == "0" {
			w.EndPod(pod, 0)
		}
		first[name] = pod
	}
	before := w.untilDone("js-workers-0", 3)
	w.untilDone("js-workers-1", 1)
	wl := w.UntilWorkloadOf("js", "has 3 reclaimable pods", func(wl *kueue.Workload) bool {
		return len(wl.Status.ReclaimablePods) == 1 && wl.Status.ReclaimablePods[0].Count == 3
	})
	w.Patch(wl.DeepCopy(), `{"spec": {"active": false}}`)
	w.UntilWorkloadOf("js", "has released its quota",
		func(wl *kueue.Workload) bool { return w.isForAllPods(wl) && wl.Status.Admission == nil })
	w.UntilEvent("js", "RestartsWhole")
	w.Patch(wl.DeepCopy(), `{"spec": {"active": true}}`)
	wl = w.UntilWorkloadOf("js", "is admitted again",
		func(wl *kueue.Workload) bool { return w.isForAllPods(wl) && admitted(wl) })
	again := w.untilRunning("js", 9)
	w.expectPlacedByRank(byIndexes(again), nodesByRank(wl))
	for name := range again {
		if _, ran := first[name]; ran {
			t.Errorf("pod %s ran before the eviction", name)
		}
	}
	if after := w.UntilJob("js-workers-0", "exists", func(*batchv1.Job) bool { return true }); after.UID == before.UID {
		t.Error("the Job that had succeeded was not created again")
	}
	for _, pod := range again {
		w.EndPod(pod, 0)
	}
	w.untilCompleted("js")
}

// untilDone waits until that many pods of the Job have succeeded, and returns it.
func (w *world) untilDone(job string, pods int32) *batchv1.Job {
	w.Helper()
	return w.UntilJob(job, "has done pods", func(job *batchv1.Job) bool {
		return job.Status.Succeeded == pods && ptr.Deref(job.Status.Ready, 0) == 3-pods
	})
}
