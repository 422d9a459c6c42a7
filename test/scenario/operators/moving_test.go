package operators

import (
	"strings"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestAJobSetStartedByItsOwnControllerKeepsRunning: Muster finds its Job and its pods as the other controller has left
// them, makes none anew, and ends it. docs/operate/moving.md rests on it.
func TestAJobSetStartedByItsOwnControllerKeepsRunning(t *testing.T) {
	w := newWorld(t)
	job := batchv1.JobSpec{
		Parallelism: ptr.To[int32](2), Completions: ptr.To[int32](2), CompletionMode: ptr.To(batchv1.IndexedCompletion),
		BackoffLimit: ptr.To[int32](0),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/trainer"}}}},
	}
	js := &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "old"},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{Name: "workers", Replicas: 1,
			Template: batchv1.JobTemplateSpec{Spec: job}}}},
	}
	w.Create(js)

	// What a controller of the public API makes of it, which knows nothing of Muster's own labels.
	keys := map[string]string{
		jobset.JobSetNameKey: js.Name, jobset.ReplicatedJobNameKey: "workers", jobset.ReplicatedJobReplicas: "1",
		jobset.JobIndexKey: "0", jobset.JobGlobalIndexKey: "0", jobset.RestartAttemptKey: "0",
	}
	owner := *metav1.NewControllerRef(js, jobset.GroupVersion.WithKind("JobSet"))
	begun := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "old-workers-0", Labels: keys, Annotations: keys,
			OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: *job.DeepCopy(),
	}
	begun.Spec.Template.Labels, begun.Spec.Template.Annotations, begun.Spec.Template.Spec.Subdomain = keys, keys, js.Name
	w.Create(begun)
	before := uids(w.run(begun.Name, 2))

	w.operate()
	harness.UntilOne(w.World, &jobset.JobSetList{}, js.Name, "is known to have its Job ready",
		func(js *jobset.JobSet) bool {
			return len(js.Status.ReplicatedJobsStatus) == 1 && js.Status.ReplicatedJobsStatus[0].Ready == 1
		})
	w.keeps(begun.Name, before)
	for _, pod := range w.UntilPodsOf(begun.Name, 2) {
		w.SetPodStatus(pod, corev1.PodSucceeded, 0)
	}
	harness.UntilOne(w.World, &jobset.JobSetList{}, js.Name, "has completed",
		func(js *jobset.JobSet) bool { return js.Status.TerminalState == string(jobset.JobSetCompleted) })
	after := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: begun.Name}}
	if w.Get(after); after.UID != begun.UID {
		t.Error("the Job was made anew")
	}
}

// TestAJobAdmittedByAnotherQueueKeepsRunning: its Workload is of the same name in both, and says where its quota is.
// What Muster notes beside that for itself is missing from one that somebody else has admitted. docs/operate/moving.md
// rests on it.
func TestAJobAdmittedByAnotherQueueKeepsRunning(t *testing.T) {
	w := newWorld(t)
	w.podQueue(2)
	first := w.operate()
	w.Create(w.Job("old", "q", 2))
	admitted := w.UntilWorkloadOf("old", "runs", runs)
	w.Create(w.Job("next", "q", 1))
	before := uids(w.UntilPodsOf("old", 2))
	w.UntilWorkloadOf("next", "waits", harness.Waits("WaitingForQuota", ""))
	first.End(syscall.SIGKILL)

	old := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "old"}}
	w.Change(old, func() { forget(&old.ObjectMeta) })
	w.Change(admitted, func() { forget(&admitted.ObjectMeta) })

	w.operate()
	w.run("old", 2)
	w.UntilWorkloadOf("old", "runs, and is known to have its pods ready", func(w *kueue.Workload) bool {
		return runs(w) && is(w, kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted)
	})
	w.keeps("old", before)
	for _, pod := range w.UntilPodsOf("old", 2) {
		w.SetPodStatus(pod, corev1.PodSucceeded, 0)
	}
	w.UntilWorkloadOf("next", "runs once the other's quota is free", runs)
}

// forget takes away what Muster alone notes on an object.
func forget(object *metav1.ObjectMeta) {
	for _, notes := range []map[string]string{object.Labels, object.Annotations} {
		for key := range notes {
			if strings.HasPrefix(key, "muster.dev/") {
				delete(notes, key)
			}
		}
	}
}

// keeps fails unless the Job's pods are those.
func (w *world) keeps(job string, want map[types.UID]bool) {
	w.Helper()
	for uid := range uids(w.UntilPodsOf(job, len(want))) {
		if !want[uid] {
			w.Errorf("a pod of %s was made anew", job)
		}
	}
}

func uids(pods []corev1.Pod) map[types.UID]bool {
	found := map[types.UID]bool{}
	for _, pod := range pods {
		found[pod.UID] = true
	}
	return found
}
