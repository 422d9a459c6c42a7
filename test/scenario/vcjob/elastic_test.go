package vcjob

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// between annotates the template of a task to run with at least least and at most most pods.
func between(least, most int) func(*volcano.TaskSpec) {
	return func(task *volcano.TaskSpec) {
		task.Template.Annotations[muster.MinReplicasAnnotation] = fmt.Sprint(least)
		task.Template.Annotations[muster.MaxReplicasAnnotation] = fmt.Sprint(most)
	}
}

// untilElasticPods waits until job elastic has exactly that many pods, all running, and returns their UIDs by name.
func (w *world) untilElasticPods(count int) map[string]types.UID {
	w.Helper()
	return w.UntilSize(volcano.JobNameKey, "elastic", count)
}

// prioritized returns a job of that many pods with a high WorkloadPriorityClass, which it creates.
func (w *world) prioritized(name string, pods int32) *volcano.Job {
	w.Helper()
	class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 100}
	w.Shared(class)
	return w.job(name, with("worker", pods, endless), func(job *volcano.Job) {
		job.Labels = map[string]string{kueue.WorkloadPriorityClassLabel: class.Name}
	})
}

// TestAnAnnotatedTaskGrowsAndShrinks: the annotations of an elastic task take precedence over minAvailable. The job
// starts with the free quota, grows when other jobs end, shrinks for a new job, shrinks to its minimum for a job of
// higher priority, and grows back, while the operator is killed during changes. Pods that stay are never recreated, and
// a resize does not count as a restart.
func TestAnAnnotatedTaskGrowsAndShrinks(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	neighbour := w.job("neighbour", with("worker", 2, endless))
	w.Create(neighbour)
	w.untilPhase("neighbour", volcano.Running)
	w.Create(w.job("elastic", with("worker", 4, endless, between(2, 5)),
		func(job *volcano.Job) { job.Spec.MinAvailable = 4 }))
	pods := w.untilElasticPods(3)
	w.Delete(neighbour)
	w.Operator().Kill()
	pods = w.ExpectSamePods(pods, w.untilElasticPods(5))
	equal := w.job("equal", with("worker", 1, endless))
	w.Create(equal)
	w.Operator().Kill()
	w.untilPhase("equal", volcano.Running)
	pods = w.ExpectSamePods(pods, w.untilElasticPods(4))
	w.Delete(equal)
	pods = w.ExpectSamePods(pods, w.untilElasticPods(5))
	w.Create(w.prioritized("urgent", 3))
	w.Operator().Kill()
	w.untilPhase("urgent", volcano.Running)
	pods = w.ExpectSamePods(pods, w.untilElasticPods(2))
	if pods["elastic-worker-0"] == "" || pods["elastic-worker-1"] == "" {
		t.Errorf("pods at the minimum size = %v, want elastic-worker-0 and elastic-worker-1", pods)
	}
	for i := range 3 {
		w.EndReplica(fmt.Sprintf("urgent-worker-%d", i), 0, 0)
	}
	w.ExpectSamePods(pods, w.untilElasticPods(5))
	job := w.untilJob("elastic", "reports 5 running pods", func(job *volcano.Job) bool { return job.Status.Running == 5 })
	if job.Status.RetryCount != 0 || job.Status.Version != 0 || job.Status.MinAvailable != 2 {
		t.Errorf("retryCount = %d, version = %d, minAvailable = %d, want 0, 0 and 2", job.Status.RetryCount,
			job.Status.Version, job.Status.MinAvailable)
	}
}

// TestARunningJobGrowsBeyondItsFirstSize: a job that can run with fewer pods than it has is scaled up while it runs. It
// gets quota for the new pods when there is some, as for any growth, and its other pods go on.
func TestARunningJobGrowsBeyondItsFirstSize(t *testing.T) {
	w := newWorld(t)
	w.queue(4)
	neighbour := w.job("neighbour", with("worker", 1, endless))
	w.Create(neighbour)
	w.untilPhase("neighbour", volcano.Running)
	job := w.job("elastic", with("worker", 2, endless), func(job *volcano.Job) { job.Spec.MinAvailable = 1 })
	w.Create(job)
	pods := w.untilElasticPods(2)
	w.Change(job, func() { job.Spec.Tasks[0].Replicas = 4 })
	pods = w.ExpectSamePods(pods, w.untilElasticPods(3))
	w.Operator().Kill()
	w.Delete(neighbour)
	w.ExpectSamePods(pods, w.untilElasticPods(4))
}
