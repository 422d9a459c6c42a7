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

// between has the template of a task say that it runs with no fewer pods than the first number, and at most with the second.
func between(least, most int) func(*volcano.TaskSpec) {
	return func(task *volcano.TaskSpec) {
		task.Template.Annotations[muster.MinReplicasAnnotation] = fmt.Sprint(least)
		task.Template.Annotations[muster.MaxReplicasAnnotation] = fmt.Sprint(most)
	}
}

// elasticPods waits until so many pods of the job elastic run and there are no others of it, and gives their ids.
func (w *world) elasticPods(count int) map[string]types.UID {
	w.Helper()
	return w.UntilSize(volcano.JobNameKey, "elastic", count)
}

// ranked is a job of so many pods that goes before others.
func (w *world) ranked(name string, pods int32) *volcano.Job {
	w.Helper()
	class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 100}
	w.Shared(class)
	return w.job(name, with("worker", pods, endless), func(job *volcano.Job) {
		job.Labels = map[string]string{kueue.WorkloadPriorityClassLabel: class.Name}
	})
}

// TestAnAnnotatedTaskGrowsAndShrinks: whatever minAvailable says. It begins with what there is, grows into what others
// leave, gives of it to one that comes, and all beyond its minimum to one that goes first, and gets it back, with the operator
// killed at each change. Nobody who stays is made anew, and nothing of that is a restart.
func TestAnAnnotatedTaskGrowsAndShrinks(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	neighbour := w.job("neighbour", with("worker", 2, endless))
	w.Create(neighbour)
	w.untilPhase("neighbour", volcano.Running)
	w.Create(w.job("elastic", with("worker", 4, endless, between(2, 5)), func(job *volcano.Job) { job.Spec.MinAvailable = 4 }))
	pods := w.elasticPods(3)
	w.Delete(neighbour)
	w.KillOperator()
	pods = w.ExpectSamePods(pods, w.elasticPods(5))
	equal := w.job("equal", with("worker", 1, endless))
	w.Create(equal)
	w.KillOperator()
	w.untilPhase("equal", volcano.Running)
	pods = w.ExpectSamePods(pods, w.elasticPods(4))
	w.Delete(equal)
	pods = w.ExpectSamePods(pods, w.elasticPods(5))
	w.Create(w.ranked("urgent", 3))
	w.KillOperator()
	w.untilPhase("urgent", volcano.Running)
	pods = w.ExpectSamePods(pods, w.elasticPods(2))
	if pods["elastic-worker-0"] == "" || pods["elastic-worker-1"] == "" {
		t.Errorf("at its minimum it has %v", pods)
	}
	for i := range 3 {
		w.EndReplica(fmt.Sprintf("urgent-worker-%d", i), 0, 0)
	}
	w.ExpectSamePods(pods, w.elasticPods(5))
	job := w.untilJob("elastic", "runs with all it can use", func(job *volcano.Job) bool { return job.Status.Running == 5 })
	if job.Status.RetryCount != 0 || job.Status.Version != 0 || job.Status.MinAvailable != 2 {
		t.Errorf("%d retries, version %d, at least %d", job.Status.RetryCount, job.Status.Version, job.Status.MinAvailable)
	}
}

// TestTwoAnnotatedTasksAreRefused: the job says why, and holds nobody up.
func TestTwoAnnotatedTasksAreRefused(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("both", with("a", 1, endless, between(1, 2)), with("b", 1, endless, between(1, 2))))
	w.UntilEvent("both", "InvalidJob")
	w.Create(w.job("next", with("worker", 2, endless)))
	w.untilPhase("next", volcano.Running)
}
