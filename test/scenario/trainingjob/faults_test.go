package trainingjob

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
)

// TestAJobGoesOnWithTheWorkersThatRun: one of five workers, each of which needs a simulated node alone, finds none of
// the four. The job goes on with four, in the same pods, and another job gets the quota of the fifth.
func TestAJobGoesOnWithTheWorkersThatRun(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	w.Create(w.job("wide", 2, 5, func(job *breezeml.TrainingJob) {
		job.Spec.ReplicaSpecs.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{breezeml.JobNameLabel: "wide"}},
			}},
		}}
	}))
	before := map[string]types.UID{}
	w.UntilPods("four workers run, and the fifth is pending", func(pods map[string]corev1.Pod) bool {
		clear(before)
		for name, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning {
				before[name] = pod.UID
			}
		}
		return len(pods) == 5 && len(before) == 4
	})
	job := w.untilRuns("wide", 4)
	w.ExpectSamePods(before, w.untilWorkers("wide", 4))
	if limit := job.Status.SizeLimit; limit == nil || limit.Workers != 4 || limit.Until == nil ||
		!strings.Contains(limit.Message, "anti-affinity") {
		t.Errorf("sizeLimit = %+v, want four workers for a while, as kube-scheduler says", limit)
	}
	w.UntilEvent("wide", breezeml.SizeLimitedReason)
	w.Create(w.job("behind", 1, 1))
	w.untilRuns("behind", 1)
	w.untilRuns("wide", 4)
}

// TestALostWorkerIsReplaced: a job whose restart policy is Never replaces workers that ran no program, and workers
// whose container was killed with its agent three times an hour. Then it goes on with the others.
func TestALostWorkerIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	w.Create(w.job("lossy", 2, 3, func(job *breezeml.TrainingJob) { job.Spec.InjectLattice = true }))
	pods := w.untilWorkers("lossy", 3)
	refused := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lossy-worker-2", Namespace: w.Namespace}}
	w.PatchStatus(refused, `{"status": {"phase": "Failed", "reason": "UnexpectedAdmissionError", "containerStatuses": null, "initContainerStatuses": null}}`)
	for lost := range 4 {
		pods = w.untilReplaced("lossy-worker-2", pods)
		if job := w.untilRuns("lossy", 3); len(job.Status.Losses) != lost {
			t.Errorf("after %d killed workers, status.losses = %v", lost, job.Status.Losses)
		}
		w.end("lossy-worker-2", 137)
	}
	job := w.untilRuns("lossy", 2)
	if limit := job.Status.SizeLimit; limit == nil || limit.Workers != 2 ||
		!strings.Contains(limit.Message, "exit code 137 in lossy-worker-2") {
		t.Errorf("sizeLimit = %+v, want two workers, because of the exit code 137", limit)
	}
	delete(pods, "lossy-worker-2")
	w.ExpectSamePods(pods, w.untilWorkers("lossy", 2))
}

// untilReplaced waits until the worker has another pod than before, and the others have theirs.
func (w *world) untilReplaced(worker string, before map[string]types.UID) map[string]types.UID {
	w.Helper()
	after := map[string]types.UID{}
	w.UntilPods(worker+" has another pod, and all pods run", func(pods map[string]corev1.Pod) bool {
		clear(after)
		for name, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				after[name] = pod.UID
			}
		}
		return len(after) == len(before) && after[worker] != before[worker]
	})
	for name, uid := range before {
		if name != worker && after[name] != uid {
			w.Errorf("pod %s was replaced too", name)
		}
	}
	return after
}

// TestWhatStillRunsIsStoppedAtALimit: cleanPodPolicy None keeps pods to be looked at. Their programs do not go on after
// the deadline of their job, nor beyond its backoffLimit. In the end the status counts all of them as failed.
func TestWhatStillRunsIsStoppedAtALimit(t *testing.T) {
	w := newWorld(t)
	w.machineQueue(4)
	for name, limit := range map[string]func(*breezeml.TrainingJob){
		"deadline": func(job *breezeml.TrainingJob) { job.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](5) },
		"backoff": func(job *breezeml.TrainingJob) {
			job.Spec.RunPolicy.BackoffLimit, job.Spec.ReplicaSpecs.RestartPolicy = ptr.To[int32](1), breezeml.RestartOnFailure
			job.Spec.ReplicaSpecs.Template.Spec.Containers[0].Command = []string{"bash", "-c",
				`[[ $(hostname) = *-0 ]] && exit 1; exec sleep 600`}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{w.In(t)}
			job := w.sleeper(name, 2, 0)
			job.Spec.RunPolicy.CleanPodPolicy = breezeml.CleanPodNone
			limit(job)
			w.Create(job)
			w.untilJob(name, "has failed, and so have both workers", func(job *breezeml.TrainingJob) bool {
				counts := job.Status.ExecStatus.ReplicaStatuses[breezeml.WorkerStatuses]
				return isTrue(job, breezeml.JobFailed) && counts.Failed == 2 && counts.Active == 0
			})
			w.UntilPods("both pods remain, and have failed", func(pods map[string]corev1.Pod) bool {
				last := pods[name+"-worker-1"]
				return len(w.podsOf(name)) == 2 && pods[name+"-worker-0"].Status.Phase == corev1.PodFailed &&
					last.Status.Phase == corev1.PodFailed && last.Status.Reason == "DeadlineExceeded"
			})
		})
	}
}

// TestWorkersThatEndAfterTheirJobAreCounted: two workers fail, the second after the first has made the job fail.
func TestWorkersThatEndAfterTheirJobAreCounted(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("both", 2, 2, func(job *breezeml.TrainingJob) {
		job.Spec.ReplicaSpecs.RestartPolicy, job.Spec.RunPolicy.CleanPodPolicy = breezeml.RestartExitCode,
			breezeml.CleanPodNone
	}))
	w.untilRuns("both", 2)
	for worker := range 2 {
		w.end(fmt.Sprintf("both-worker-%d", worker), 1)
		w.untilJob("both", fmt.Sprintf("has failed, with %d failed workers", worker+1), func(job *breezeml.TrainingJob) bool {
			counts := job.Status.ExecStatus.ReplicaStatuses[breezeml.WorkerStatuses]
			return isTrue(job, breezeml.JobFailed) && counts.Failed == int32(worker+1) && counts.Active == int32(1-worker)
		})
	}
}
