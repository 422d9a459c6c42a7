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

// TestTheExampleOfTheDocumentation: unmodified, it starts with what there is, and ends as it should.
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
	harness.Until(w.World, &corev1.ServiceList{}, "each worker has its Service", func(list *corev1.ServiceList) bool { return len(list.Items) == 3 })
	w.untilStands("lattice-simple1", breezeml.StageRunning, 3)
	job := w.untilJob("lattice-simple1", "has ended", func(job *breezeml.TrainingJob) bool { return job.Status.Stage == breezeml.StageCompleted })
	if !isTrue(job, breezeml.JobSucceeded) || isTrue(job, breezeml.JobRunning) || job.Status.CurrentSize != 0 {
		t.Errorf("its status is %+v", job.Status)
	}
	s := &job.Status
	for what, at := range map[string]*metav1.Time{"submitTime": s.SubmitTime, "queuedTime": s.QueuedTime, "lastExecTime": s.LastExecTime, "completionTime": s.CompletionTime,
		"execStatus.startTime": s.ExecStatus.StartTime, "execStatus.completionTime": s.ExecStatus.CompletionTime, "execStatus.lastReconcileTime": s.ExecStatus.LastReconcileTime} {
		if at == nil {
			t.Errorf("%s is not told", what)
		}
	}
	if s.RequeueTime != nil || s.CooldownTime != nil {
		t.Errorf("requeueTime %v and cooldownTime %v are told", s.RequeueTime, s.CooldownTime)
	}
	harness.Until(w.World, &corev1.PodList{}, "all its pods are gone", func(list *corev1.PodList) bool { return len(list.Items) == 0 })
	harness.Until(w.World, &corev1.ServiceList{}, "and their Services", func(list *corev1.ServiceList) bool { return len(list.Items) == 0 })
}

// TestWrongSizesAreAStage: the job waits until they are mended, and holds nobody up meanwhile.
func TestWrongSizesAreAStage(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	for name, least := range map[string]int32{"above": 3, "zero": 0, "negative": -1} {
		w.Create(w.job(name, least, 2))
	}
	for _, name := range []string{"above", "zero", "negative"} {
		w.untilStands(name, breezeml.StageWrongConfiguration, 0)
	}
	w.Create(w.job("right", 2, 2))
	w.untilRuns("right", 2)
	w.end("right-worker-0", 0)
	w.end("right-worker-1", 0)
	before := w.untilStands("above", breezeml.StageWrongConfiguration, 0)
	w.patch("above", `{"spec": {"minSize": 2}}`)
	after := w.untilRuns("above", 2)
	// Times are in whole seconds.
	if after.Status.SubmitTime.Before(&before.CreationTimestamp) || !after.Status.SubmitTime.Equal(after.Status.QueuedTime) {
		t.Errorf("made at %s, it counts as submitted at %s and queues since %s", before.CreationTimestamp, after.Status.SubmitTime, after.Status.QueuedTime)
	}
}

// TestAHigherPriorityGoesFirst: who is stopped for it keeps his turn, and goes on later.
func TestAHigherPriorityGoesFirst(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("first", 2, 2))
	queued := w.untilRuns("first", 2).Status.QueuedTime
	w.Create(w.job("urgent", 2, 2, priority(5)))
	w.untilRuns("urgent", 2)
	job := w.untilStands("first", breezeml.StageWaiting, 0)
	if isTrue(job, breezeml.JobRunning) || !job.Status.QueuedTime.Equal(queued) {
		t.Errorf("stopped, its status is %+v", job.Status)
	}
	w.end("urgent-worker-0", 0)
	w.end("urgent-worker-1", 0)
	if job := w.untilRuns("first", 2); !job.Status.QueuedTime.Equal(queued) || job.Status.LastExecTime.Before(queued) { // whole seconds
		t.Errorf("again, its status is %+v", job.Status)
	}
}

// TestRunPolicies: suspension, restarts and how many, the deadline, what is kept, and for how long.
func TestRunPolicies(t *testing.T) {
	w := newWorld(t)
	w.queue(32)
	in := func(t *testing.T) *world {
		t.Parallel()
		return &world{w.In(t)}
	}
	t.Run("suspended and resumed", func(t *testing.T) {
		w := in(t)
		w.Create(w.job("held", 2, 2))
		w.untilRuns("held", 2)
		w.patch("held", `{"spec": {"runPolicy": {"suspend": true}}}`)
		job := w.untilStands("held", breezeml.StageWaiting, 0)
		if !isTrue(job, breezeml.JobSuspended) || job.Status.ExecStatus.StartTime != nil {
			t.Errorf("its status is %+v", job.Status)
		}
		harness.Until(w.World, &corev1.PodList{}, "its pods are gone", func(*corev1.PodList) bool { return len(w.podsOf("held")) == 0 })
		w.patch("held", `{"spec": {"runPolicy": {"suspend": false}}}`)
		if job := w.untilRuns("held", 2); isTrue(job, breezeml.JobSuspended) || job.Status.ExecStatus.StartTime == nil {
			t.Errorf("resumed, its status is %+v", job.Status)
		}
	})
	t.Run("restarted by exit code, as often as it may", func(t *testing.T) {
		w := in(t)
		w.Create(w.job("codes", 2, 2, func(job *breezeml.TrainingJob) {
			job.Spec.ReplicaSpecs.RestartPolicy, job.Spec.RunPolicy.BackoffLimit = breezeml.RestartExitCode, ptr.To[int32](1)
			job.Spec.RunPolicy.CleanPodPolicy = breezeml.CleanPodRunning
		}))
		w.untilRuns("codes", 2)
		w.end("codes-worker-1", 137)
		w.untilJob("codes", "runs again", func(job *breezeml.TrainingJob) bool {
			return job.Status.Restarts["1"] == 1 && isTrue(job, breezeml.JobRunning) && job.Status.ExecStatus.ReplicaStatuses["Worker"].Active == 2
		})
		w.end("codes-worker-0", 137)
		job := w.untilStands("codes", breezeml.StageCompleted, 0)
		if i := slices.IndexFunc(job.Status.ExecStatus.Conditions, func(c breezeml.JobCondition) bool { return c.Type == breezeml.JobFailed }); i < 0 ||
			job.Status.ExecStatus.Conditions[i].Message != "TrainingJob codes has failed because it has reached the specified backoff limit: exit code 137 in codes-worker-0" {
			t.Errorf("its conditions are %+v", job.Status.ExecStatus.Conditions)
		}
		harness.Until(w.World, &corev1.PodList{}, "what ran is gone, what had ended stays", func(*corev1.PodList) bool {
			return slices.Equal(w.podsOf("codes"), []string{"codes-worker-0"})
		})
	})
	t.Run("longer than it may", func(t *testing.T) {
		w := in(t)
		w.Create(w.job("late", 1, 1, func(job *breezeml.TrainingJob) { job.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](3) }))
		if job := w.untilStands("late", breezeml.StageCompleted, 0); !isTrue(job, breezeml.JobFailed) || job.Status.CompletionTime.Sub(job.Status.ExecStatus.StartTime.Time) < 3*time.Second {
			t.Errorf("its status is %+v", job.Status)
		}
	})
	t.Run("deleted in time", func(t *testing.T) {
		w := in(t)
		w.Create(w.job("brief", 1, 1, func(job *breezeml.TrainingJob) { job.Spec.RunPolicy.TTLSecondsAfterFinished = ptr.To[int32](10) }))
		w.end("brief-worker-0", 0)
		w.untilStands("brief", breezeml.StageCompleted, 0)
		harness.Until(w.World, &breezeml.TrainingJobList{}, "it is gone", func(list *breezeml.TrainingJobList) bool {
			return !slices.ContainsFunc(list.Items, func(job breezeml.TrainingJob) bool { return job.Name == "brief" })
		})
	})
	t.Run("all is kept", func(t *testing.T) {
		w := in(t)
		w.Create(w.job("kept", 2, 2, func(job *breezeml.TrainingJob) { job.Spec.RunPolicy.CleanPodPolicy = breezeml.CleanPodNone }))
		w.end("kept-worker-0", 1)
		w.untilStands("kept", breezeml.StageCompleted, 0)
		if got := w.podsOf("kept"); len(got) != 2 {
			t.Errorf("left are %v", got)
		}
	})
}

// TestAJobWithStuckPodsReleasesItsQuota: the jobs behind it get the quota, and it queues again later.
func TestAJobWithStuckPodsReleasesItsQuota(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("stuck", 1, 2, func(job *breezeml.TrainingJob) {
		job.Spec.ReplicaSpecs.Template.Spec.NodeSelector = map[string]string{"example.com/there-is-none": "true"}
	}))
	first := w.untilJob("stuck", "tells until when it may be pending", func(job *breezeml.TrainingJob) bool { return job.Status.RequeueTime != nil })
	w.Create(w.job("behind", 2, 2))
	w.untilStands("behind", breezeml.StageWaiting, 0)
	job := w.untilStands("stuck", breezeml.StageRequeueCooldown, 0)
	if job.Status.CooldownTime == nil || job.Status.RequeueTime != nil {
		t.Errorf("its status is %+v", job.Status)
	}
	w.untilRuns("behind", 2)
	w.untilStands("stuck", breezeml.StageWaiting, 0)
	w.end("behind-worker-0", 0)
	w.end("behind-worker-1", 0)
	if again := w.untilStands("stuck", breezeml.StageRunning, 2); !first.Status.QueuedTime.Before(again.Status.QueuedTime) || !first.Status.SubmitTime.Equal(again.Status.SubmitTime) || again.Status.CooldownTime != nil {
		t.Errorf("again, its status is %+v", again.Status)
	}
}

// TestADeactivatedJobIsCancelled until somebody activates it.
func TestADeactivatedJobIsCancelled(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.Create(w.job("off", 1, 1))
	w.untilRuns("off", 1)
	w.activate(false)
	w.untilStands("off", breezeml.StageCancelled, 0)
	w.activate(true)
	w.untilRuns("off", 1)
}

// TestOperatorKilled: again and again, each time when a job has got somewhere. Each worker is made once.
func TestOperatorKilled(t *testing.T) {
	w := newWorld(t)
	w.queue(6)
	pods, err := w.Client.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(w.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]int{}
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Added {
				made[pod.Name]++
			}
		}
	}()
	for i := range 3 {
		w.Create(w.job(fmt.Sprintf("job-%d", i), 2, 2))
	}
	w.KillOperator() // while they are being queued
	w.untilRuns("job-0", 2)
	w.KillOperator()
	for i := range 3 {
		w.untilRuns(fmt.Sprintf("job-%d", i), 2)
		w.end(fmt.Sprintf("job-%d-worker-0", i), 0)
		if i == 0 { // whoever is killed often is started anew ever later
			w.KillOperator() // while one worker runs
		}
		w.end(fmt.Sprintf("job-%d-worker-1", i), 0)
		if i == 1 {
			w.KillOperator() // while it ends
		}
		if job := w.untilStands(fmt.Sprintf("job-%d", i), breezeml.StageCompleted, 0); !isTrue(job, breezeml.JobSucceeded) {
			t.Errorf("its status is %+v", job.Status)
		}
	}
	harness.Until(w.World, &corev1.PodList{}, "all pods are gone", func(list *corev1.PodList) bool { return len(list.Items) == 0 })
	pods.Stop()
	<-counted
	if len(made) != 6 {
		t.Errorf("the pods %v were made", made)
	}
	for name, times := range made {
		if times != 1 {
			t.Errorf("%s was made %d times", name, times)
		}
	}
}
