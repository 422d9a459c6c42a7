package genericjob

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
)

// elastic lets the last replica type have between least and most replicas.
func elastic(least, most int) func(*tensorstack.GenericJob) {
	return func(job *tensorstack.GenericJob) {
		job.Spec.ReplicaSpecs[len(job.Spec.ReplicaSpecs)-1].Template.Annotations[muster.MinReplicasAnnotation] =
			fmt.Sprint(least)
		job.Spec.ReplicaSpecs[len(job.Spec.ReplicaSpecs)-
			1].Template.Annotations[muster.MaxReplicasAnnotation] = fmt.Sprint(most)
	}
}

// untilWorkers waits until the job has a master and that many workers, all running, and returns the UIDs of its pods by
// name.
func (w *world) untilWorkers(name string, workers int32) map[string]types.UID {
	w.Helper()
	w.untilJob(name, fmt.Sprintf("runs with %d workers", workers), func(job *tensorstack.GenericJob) bool {
		return job.Status.Phase == tensorstack.JobPhaseRunning && len(job.Status.Tasks[1].Replicas) == int(workers) &&
			job.Status.Aggregate.Running == workers+1
	})
	pods := w.UntilSize(tensorstack.GenericJobLabel, name, int(workers)+1)
	for rank := range workers {
		if replica := fmt.Sprintf("%s-worker-%d", name, rank); pods[replica] == "" {
			w.Errorf("pods = %v, want %s among the %d workers", pods, replica, workers)
		}
	}
	return pods
}

// TestAnElasticTypeGrowsAndShrinks: an elastic replica type uses all free quota, releases some of it to a new job, is
// reduced to its minimum by a job of higher priority, and grows back afterwards. The replicas that stay keep their pods
// throughout, although the operator is killed during changes.
func TestAnElasticTypeGrowsAndShrinks(t *testing.T) {
	w := newWorld(t)
	w.queue(6)
	w.Create(w.job("flex", with("master", 1, 0), with("worker", 3, 0), elastic(1, 5), inQueue(10)))
	pods := w.untilWorkers("flex", 5)

	rigid := w.job("rigid", with("worker", 2, 0), inQueue(10))
	w.Create(rigid)
	w.Operator().Kill()
	w.untilPhase("rigid", tensorstack.JobPhaseRunning)
	pods = w.ExpectSamePods(pods, w.untilWorkers("flex", 3))
	w.Delete(rigid)
	w.Operator().Kill()
	pods = w.ExpectSamePods(pods, w.untilWorkers("flex", 5))

	urgent := w.job("urgent", with("worker", 4, 0), inQueue(90))
	w.Create(urgent)
	w.Operator().Kill()
	w.untilPhase("urgent", tensorstack.JobPhaseRunning)
	pods = w.ExpectSamePods(pods, w.untilWorkers("flex", 1))
	w.Delete(urgent)
	w.ExpectSamePods(pods, w.untilWorkers("flex", 5))
	w.EndReplica("flex-master-0", 0, 0)
	for rank := range 5 {
		w.EndReplica(fmt.Sprintf("flex-worker-%d", rank), 0, 0)
	}
	if job := w.untilPhase("flex", tensorstack.JobPhaseSucceeded); job.Status.Tasks[1].RestartCount != 0 {
		t.Errorf("restartCount of the workers = %d, want 0", job.Status.Tasks[1].RestartCount)
	}
}

// TestSucceededReplicasOfAnElasticTypeGiveQuotaBack: the quota of workers that have succeeded goes to jobs that wait,
// also of lower priority and below the minimum of the type. The other workers run on in their pods, whatever their
// ranks.
func TestSucceededReplicasOfAnElasticTypeGiveQuotaBack(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	w.Create(w.job("flex", with("master", 1, 0), with("worker", 3, 0), elastic(2, 4), inQueue(50)))
	pods := w.untilWorkers("flex", 4)
	for _, name := range []string{"first", "second", "third"} {
		w.Create(w.job(name, with("worker", 1, 0), inQueue(10)))
	}
	for rank, next := range []string{"first", "second", "third"} {
		w.EndReplica(fmt.Sprintf("flex-worker-%d", rank), 0, 0)
		if rank == 1 {
			w.Operator().Kill()
		}
		w.untilPhase(next, tensorstack.JobPhaseRunning)
		job := w.untilJob("flex", fmt.Sprintf("has %d succeeded workers", rank+1), func(job *tensorstack.GenericJob) bool {
			return job.Status.Aggregate.Succeeded == int32(rank)+1
		})
		if got := job.Status.Aggregate.Running; got != int32(4-rank) {
			t.Errorf("%d pods run after %d workers have succeeded, want the %d others", got, rank+1, 4-rank)
		}
	}
	w.UntilPods("the last worker runs in its first pod", func(now map[string]corev1.Pod) bool {
		last := now["flex-worker-3"]
		return last.UID == pods["flex-worker-3"] && last.Status.Phase == corev1.PodRunning
	})
	w.EndReplica("flex-worker-3", 0, 0)
	w.EndReplica("flex-master-0", 0, 0)
	w.untilPhase("flex", tensorstack.JobPhaseSucceeded)
}
