package trainingjob

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/examples"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestTheExampleOfTheDocumentation: the documented example runs unmodified, with as many workers as the quota allows,
// and succeeds. The status has its times, and its pods and Services are deleted.
func TestTheExampleOfTheDocumentation(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	text, err := examples.Files.ReadFile("trainingjob/trainingjob-simple.yaml")
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace(w.Namespace)
	w.Create(object)
	harness.Until(w.World, &corev1.ServiceList{}, "each worker has its Service",
		func(list *corev1.ServiceList) bool { return len(list.Items) == 3 })
	w.untilStage("lattice-simple1", breezeml.StageRunning, 3)
	job := w.untilJob("lattice-simple1", "is completed",
		func(job *breezeml.TrainingJob) bool { return job.Status.Stage == breezeml.StageCompleted })
	if !isTrue(job, breezeml.JobSucceeded) || isTrue(job, breezeml.JobRunning) || job.Status.CurrentSize != 0 {
		t.Errorf("status = %+v, want succeeded with size 0", job.Status)
	}
	s := &job.Status
	for what, at := range map[string]*metav1.Time{"submitTime": s.SubmitTime, "queuedTime": s.QueuedTime,
		"lastExecTime": s.LastExecTime, "completionTime": s.CompletionTime,
		"execStatus.startTime": s.ExecStatus.StartTime, "execStatus.completionTime": s.ExecStatus.CompletionTime,
		"execStatus.lastReconcileTime": s.ExecStatus.LastReconcileTime} {
		if at == nil {
			t.Errorf("%s is not set", what)
		}
	}
	if s.RequeueTime != nil || s.CooldownTime != nil {
		t.Errorf("requeueTime = %v and cooldownTime = %v, want neither", s.RequeueTime, s.CooldownTime)
	}
	harness.Until(w.World, &corev1.PodList{}, "the pods are deleted",
		func(list *corev1.PodList) bool { return len(list.Items) == 0 })
	harness.Until(w.World, &corev1.ServiceList{}, "the Services are deleted",
		func(list *corev1.ServiceList) bool { return len(list.Items) == 0 })
}

// TestAJobWithInvalidSizesWaitsForCorrection: a job with invalid sizes is in the stage WrongConfiguration until they
// are corrected, and does not block the jobs behind it. It counts as submitted and queued only since the correction.
func TestAJobWithInvalidSizesWaitsForCorrection(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	for name, least := range map[string]int32{"above": 3, "zero": 0, "negative": -1} {
		w.Create(w.job(name, least, 2))
	}
	for _, name := range []string{"above", "zero", "negative"} {
		w.untilStage(name, breezeml.StageWrongConfiguration, 0)
	}
	w.Create(w.job("right", 2, 2))
	w.untilRuns("right", 2)
	w.end("right-worker-0", 0)
	w.end("right-worker-1", 0)
	w.untilStage("above", breezeml.StageWrongConfiguration, 0)
	corrected := metav1.Now().Rfc3339Copy() // times in the status are in whole seconds
	w.patch("above", `{"spec": {"minSize": 2}}`)
	after := w.untilRuns("above", 2)
	if after.Status.SubmitTime.Before(&corrected) || !after.Status.SubmitTime.Equal(after.Status.QueuedTime) {
		t.Errorf("submitTime = %s, queuedTime = %s, want both equal and not before the correction at %s",
			after.Status.SubmitTime, after.Status.QueuedTime, corrected)
	}
}

// TestAHigherPriorityGoesFirst: a job that is stopped for a job of higher priority keeps its queuedTime, and runs again
// afterwards.
func TestAHigherPriorityGoesFirst(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("first", 2, 2))
	queued := w.untilRuns("first", 2).Status.QueuedTime
	w.Create(w.job("urgent", 2, 2, priority(5)))
	w.untilRuns("urgent", 2)
	job := w.untilStage("first", breezeml.StageWaiting, 0)
	if isTrue(job, breezeml.JobRunning) || !job.Status.QueuedTime.Equal(queued) {
		t.Errorf("status of the stopped job = %+v, want not running and queuedTime %s", job.Status, queued)
	}
	w.end("urgent-worker-0", 0)
	w.end("urgent-worker-1", 0)
	if job := w.untilRuns("first", 2); !job.Status.QueuedTime.Equal(queued) || job.Status.LastExecTime.Before(queued) {
		// times are in whole seconds
		t.Errorf("status of the restarted job = %+v, want queuedTime %s and a later lastExecTime", job.Status, queued)
	}
}

// TestRunPolicies: suspend stops a job, restarts depend on the exit code and end at backoffLimit, activeDeadlineSeconds
// fails a job, ttlSecondsAfterFinished deletes it, and cleanPodPolicy decides which pods remain.
func TestRunPolicies(t *testing.T) {
	w := newWorld(t)
	w.queue(32)
	subtest := func(t *testing.T) *world {
		t.Parallel()
		return &world{w.In(t)}
	}
	t.Run("suspended and resumed", func(t *testing.T) {
		w := subtest(t)
		w.Create(w.job("suspended", 2, 2))
		w.untilRuns("suspended", 2)
		w.patch("suspended", `{"spec": {"runPolicy": {"suspend": true}}}`)
		job := w.untilStage("suspended", breezeml.StageWaiting, 0)
		if !isTrue(job, breezeml.JobSuspended) || job.Status.ExecStatus.StartTime != nil {
			t.Errorf("status = %+v, want suspended without a start time", job.Status)
		}
		harness.Until(w.World, &corev1.PodList{}, "the pods of suspended are deleted",
			func(*corev1.PodList) bool { return len(w.podsOf("suspended")) == 0 })
		w.patch("suspended", `{"spec": {"runPolicy": {"suspend": false}}}`)
		if job := w.untilRuns("suspended", 2); isTrue(job, breezeml.JobSuspended) || job.Status.ExecStatus.StartTime == nil {
			t.Errorf("status after the resume = %+v, want not suspended, with a start time", job.Status)
		}
	})
	t.Run("restarts by exit code, up to backoffLimit", func(t *testing.T) {
		w := subtest(t)
		w.Create(w.job("codes", 2, 2, func(job *breezeml.TrainingJob) {
			job.Spec.ReplicaSpecs.RestartPolicy, job.Spec.RunPolicy.BackoffLimit = breezeml.RestartExitCode, ptr.To[int32](1)
			job.Spec.RunPolicy.CleanPodPolicy = breezeml.CleanPodRunning
		}))
		w.untilRuns("codes", 2)
		w.end("codes-worker-1", 137)
		w.untilJob("codes", "runs again with one restart of worker 1", func(job *breezeml.TrainingJob) bool {
			return job.Status.Restarts["1"] == 1 && isTrue(job, breezeml.JobRunning) &&
				job.Status.ExecStatus.ReplicaStatuses["Worker"].Active == 2
		})
		w.end("codes-worker-0", 137)
		job := w.untilStage("codes", breezeml.StageCompleted, 0)
		const want = "TrainingJob codes has failed because it has reached the specified backoff limit: exit code 137 in codes-worker-0"
		if i := slices.IndexFunc(job.Status.ExecStatus.Conditions,
			func(c breezeml.JobCondition) bool { return c.Type == breezeml.JobFailed }); i < 0 ||
			job.Status.ExecStatus.Conditions[i].Message != want {
			t.Errorf("conditions = %+v, want Failed with the message %q", job.Status.ExecStatus.Conditions, want)
		}
		harness.Until(w.World, &corev1.PodList{}, "only the pod that had ended remains", func(*corev1.PodList) bool {
			return slices.Equal(w.podsOf("codes"), []string{"codes-worker-0"})
		})
	})
	t.Run("active deadline", func(t *testing.T) {
		w := subtest(t)
		w.Create(w.job("late", 1, 1,
			func(job *breezeml.TrainingJob) { job.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](3) }))
		if job := w.untilStage("late", breezeml.StageCompleted, 0); !isTrue(job, breezeml.JobFailed) ||
			job.Status.CompletionTime.Sub(job.Status.ExecStatus.StartTime.Time) < 3*time.Second {
			t.Errorf("status = %+v, want failed, no sooner than 3s after the start", job.Status)
		}
	})
	t.Run("TTL after the end", func(t *testing.T) {
		w := subtest(t)
		w.Create(w.job("brief", 1, 1,
			func(job *breezeml.TrainingJob) { job.Spec.RunPolicy.TTLSecondsAfterFinished = ptr.To[int32](10) }))
		w.end("brief-worker-0", 0)
		w.untilStage("brief", breezeml.StageCompleted, 0)
		harness.Until(w.World, &breezeml.TrainingJobList{}, "brief is deleted", func(list *breezeml.TrainingJobList) bool {
			return !slices.ContainsFunc(list.Items, func(job breezeml.TrainingJob) bool { return job.Name == "brief" })
		})
	})
	t.Run("no clean-up", func(t *testing.T) {
		w := subtest(t)
		w.Create(w.job("remaining", 2, 2,
			func(job *breezeml.TrainingJob) { job.Spec.RunPolicy.CleanPodPolicy = breezeml.CleanPodNone }))
		w.end("remaining-worker-0", 1)
		w.untilStage("remaining", breezeml.StageCompleted, 0)
		// A clean-up follows the status, so give the operator the time in which it starts another job.
		w.Create(w.job("later", 1, 1))
		w.untilRuns("later", 1)
		w.UntilPods("the pods of remaining are read", func(pods map[string]corev1.Pod) bool {
			for _, name := range []string{"remaining-worker-0", "remaining-worker-1"} {
				if pod, ok := pods[name]; !ok || pod.DeletionTimestamp != nil {
					t.Errorf("pod %s exists: %v, is terminating: %v, want it to remain", name, ok, pod.DeletionTimestamp != nil)
				}
			}
			return true
		})
	})
}

// TestAJobWithStuckPodsReleasesItsQuota: a job whose pods are pending for longer than pendingTimeout releases its quota
// to the job behind it, and queues again after a cooldown, with a new queuedTime.
func TestAJobWithStuckPodsReleasesItsQuota(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("stuck", 1, 2, func(job *breezeml.TrainingJob) {
		job.Spec.ReplicaSpecs.Template.Spec.NodeSelector = map[string]string{"example.com/no-such-node": "true"}
	}))
	first := w.untilJob("stuck", "has a requeueTime",
		func(job *breezeml.TrainingJob) bool { return job.Status.RequeueTime != nil })
	w.Create(w.job("behind", 2, 2))
	w.untilStage("behind", breezeml.StageWaiting, 0)
	job := w.untilStage("stuck", breezeml.StageRequeueCooldown, 0)
	if job.Status.CooldownTime == nil || job.Status.RequeueTime != nil {
		t.Errorf("status = %+v, want a cooldownTime and no requeueTime", job.Status)
	}
	w.untilRuns("behind", 2)
	w.untilStage("stuck", breezeml.StageWaiting, 0)
	w.end("behind-worker-0", 0)
	w.end("behind-worker-1", 0)
	if again := w.untilStage("stuck", breezeml.StageRunning,
		2); !first.Status.QueuedTime.Before(again.Status.QueuedTime) ||
		!first.Status.SubmitTime.Equal(again.Status.SubmitTime) || again.Status.CooldownTime != nil {
		t.Errorf("status of the requeued job = %+v, want a queuedTime after %s, submitTime %s and no cooldownTime",
			again.Status, first.Status.QueuedTime, first.Status.SubmitTime)
	}
}

// TestADeactivatedJobIsCancelled: a job whose Workload is deactivated is in the stage Cancelled until the Workload is
// activated again.
func TestADeactivatedJobIsCancelled(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.Create(w.job("off", 1, 1))
	w.untilRuns("off", 1)
	w.setActive(false)
	w.untilStage("off", breezeml.StageCancelled, 0)
	w.setActive(true)
	w.untilRuns("off", 1)
}

// TestOperatorKilled: the operator is killed while jobs are queued, run and end. All jobs succeed, and each worker's
// pod is created exactly once.
func TestOperatorKilled(t *testing.T) {
	w := newWorld(t)
	w.queue(6)
	pods, err := w.Client.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(w.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	created := map[string]int{}
	watchDone := make(chan struct{})
	go func() {
		defer close(watchDone)
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Added {
				created[pod.Name]++
			}
		}
	}()
	for i := range 3 {
		w.Create(w.job(fmt.Sprintf("job-%d", i), 2, 2))
	}
	w.Operator().Kill() // while they are being queued
	w.untilRuns("job-0", 2)
	w.Operator().Kill()
	for i := range 3 {
		w.untilRuns(fmt.Sprintf("job-%d", i), 2)
		w.end(fmt.Sprintf("job-%d-worker-0", i), 0)
		if i == 0 { // only a few times: each restart of the operator is delayed longer than the one before
			w.Operator().Kill() // while one worker runs
		}
		w.end(fmt.Sprintf("job-%d-worker-1", i), 0)
		if i == 1 {
			w.Operator().Kill() // while it ends
		}
		if job := w.untilStage(fmt.Sprintf("job-%d", i), breezeml.StageCompleted, 0); !isTrue(job, breezeml.JobSucceeded) {
			t.Errorf("status of %s = %+v, want succeeded", job.Name, job.Status)
		}
	}
	harness.Until(w.World, &corev1.PodList{}, "the pods are deleted",
		func(list *corev1.PodList) bool { return len(list.Items) == 0 })
	pods.Stop()
	<-watchDone
	if len(created) != 6 {
		t.Errorf("created pods = %v, want 6", created)
	}
	for name, times := range created {
		if times != 1 {
			t.Errorf("pod %s was created %d times, want once", name, times)
		}
	}
}
