package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
)

// trainingSettings are the settings of TrainingJobs in these tests.
var trainingSettings = trainingjob.Settings{Group: breezeml.DefaultGroup, PendingTimeout: 5 * time.Minute,
	Cooldown: 3 * time.Hour}

// trainingWorld is a podWorld with a TrainingJob.
type trainingWorld struct {
	*podWorld
	// actions are what the user and the queue are still to do, each when all pods run.
	actions []func(*trainingWorld)
	// stuckPods is how many pods are still to be removed before the kubelet starts any: until then they stay pending.
	stuckPods int
}

// trainingLife describes what happens to a TrainingJob from its creation to its end.
type trainingLife struct {
	job     func() *breezeml.TrainingJob
	code    func(name, attempt string) int32
	actions []func(*trainingWorld)
	stuck   int
	ends    breezeml.JobConditionType
}

// newTrainingJob returns ns/job with two to three workers, which are recreated if a signal ends them, at most once.
func newTrainingJob() *breezeml.TrainingJob {
	job := &breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid"}}
	job.Spec.MinSize, job.Spec.MaxSize = ptr.To[int32](2), ptr.To[int32](3)
	job.Spec.ReplicaSpecs.RestartPolicy = breezeml.RestartExitCode
	job.Spec.RunPolicy.BackoffLimit = ptr.To[int32](1)
	job.Spec.RunPolicy.SchedulingPolicy = &breezeml.SchedulingPolicy{Queue: "cq"}
	job.Spec.ReplicaSpecs.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
	return job
}

// resizeTo returns an action by which the queue grants another size.
func resizeTo(size int32) func(*trainingWorld) {
	return func(w *trainingWorld) {
		wl := w.workload()
		wl.Status.Admission.PodSetAssignments[0].Count = &size
		w.updateStatus(wl)
	}
}

// evict is an action by which the queue evicts the job.
func evict(w *trainingWorld) { w.evict() }

// suspend is an action by which the user suspends the job; act resumes it.
func suspend(w *trainingWorld) { w.suspend(true) }

func (t *trainingWorld) suspend(is bool) {
	t.changes++
	job := t.trainingJob()
	job.Spec.RunPolicy.Suspend = &is
	if err := t.api.Update(t.t.Context(), job); err != nil {
		t.t.Fatal(err)
	}
}

// firstWorkerIsKilled returns exit codes by which a signal ends the first worker once.
func firstWorkerIsKilled(name, attempt string) int32 {
	if name == "job-worker-0" && attempt == "0" {
		return 137
	}
	return 0
}

// trainingLives are the lives of TrainingJobs that the tests of this file go through.
var trainingLives = map[string]trainingLife{
	"queued, admitted, run, succeeded": {job: newTrainingJob, ends: breezeml.JobSucceeded},
	"restarted once":                   {job: newTrainingJob, code: firstWorkerIsKilled, ends: breezeml.JobSucceeded},
	"failed": {job: newTrainingJob, code: func(string, string) int32 { return 1 },
		ends: breezeml.JobFailed},
	"restarted too often": {job: newTrainingJob,
		code: func(name, _ string) int32 { return map[string]int32{"job-worker-0": 137}[name] }, ends: breezeml.JobFailed},
	"shrunk, grown": {job: newTrainingJob, actions: []func(*trainingWorld){resizeTo(2), resizeTo(3)},
		ends: breezeml.JobSucceeded},
	"evicted and run again": {job: newTrainingJob, actions: []func(*trainingWorld){evict},
		ends: breezeml.JobSucceeded},
	"suspended and resumed": {job: newTrainingJob, actions: []func(*trainingWorld){suspend},
		ends: breezeml.JobSucceeded},
	"pending too long, run later": {job: newTrainingJob, stuck: 1, ends: breezeml.JobSucceeded},
}

// run goes through the life with the fault, and returns the world after it.
func (tl trainingLife) run(t *testing.T, f fault) *trainingWorld {
	t.Helper()
	w := &trainingWorld{newPodWorld(t, f, of(trainingjob.API(trainingSettings)), tl.job(), clusterQueue("cq"), flavor()),
		tl.actions, tl.stuck}
	w.code, w.userAction = tl.code, w.act
	w.mayStart = func(*corev1.Pod) bool { return w.stuckPods == 0 }
	w.mayEnd = func(*corev1.Pod) bool {
		return len(w.actions) == 0 && !ptr.Deref(w.trainingJob().Spec.RunPolicy.Suspend, false) && w.allStarted()
	}
	w.onRemoved = func() {
		if w.stuckPods > 0 && w.trainingJob().Status.Stage == breezeml.StageRequeueCooldown {
			w.stuckPods--
		}
	}
	w.settle()
	return w
}

func (t *trainingWorld) trainingJob() *breezeml.TrainingJob {
	return &list[breezeml.TrainingJobList](t.world).Items[0]
}

// act does the next action once all pods run, and resumes a suspended job once it has no pods and no Workload.
func (t *trainingWorld) act() {
	job := t.trainingJob()
	switch {
	case ptr.Deref(job.Spec.RunPolicy.Suspend, false):
		if len(list[corev1.PodList](t.world).Items)+len(list[kueue.WorkloadList](t.world).Items) == 0 {
			t.suspend(false)
		}
	case len(t.actions) > 0 && t.runs(job):
		act := t.actions[0]
		t.actions = t.actions[1:]
		act(t)
	}
}

// runs reports whether the job runs at the size that was granted, according to its status.
func (t *trainingWorld) runs(job *breezeml.TrainingJob) bool {
	s := &job.Status
	wls := list[kueue.WorkloadList](t.world).Items
	if len(wls) != 1 || wls[0].Status.Admission == nil ||
		s.CurrentSize != *wls[0].Status.Admission.PodSetAssignments[0].Count {
		return false
	}
	pods := list[corev1.PodList](t.world).Items
	return s.Stage == breezeml.StageRunning && s.ExecStatus.ReplicaStatuses["Worker"].Active == s.CurrentSize &&
		len(pods) == int(s.CurrentSize)
}

// allStarted reports whether all pods have started, and so may end.
func (t *trainingWorld) allStarted() bool {
	n := 0
	for _, pod := range list[corev1.PodList](t.world).Items {
		if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" && pod.DeletionTimestamp.IsZero() {
			n++
		}
	}
	return n == int(t.trainingJob().Status.CurrentSize)
}

// state returns the job without its resourceVersion and times; times that are set stay set.
func (t *trainingWorld) state() breezeml.TrainingJob {
	job := *t.trainingJob()
	job.ResourceVersion = ""
	status := &job.Status
	for _, at := range []**metav1.Time{&status.SubmitTime, &status.QueuedTime, &status.LastExecTime,
		&status.CompletionTime, &status.ExecStatus.StartTime, &status.ExecStatus.CompletionTime,
		&status.ExecStatus.LastReconcileTime} {
		if *at != nil {
			*at = &metav1.Time{}
		}
	}
	for j := range status.ExecStatus.Conditions {
		c := &status.ExecStatus.Conditions[j]
		c.LastTransitionTime, c.LastUpdateTime = metav1.Time{}, metav1.Time{}
	}
	return job
}

// TestFailedWritesDoNotChangeTheOutcomeOfATrainingJob, whichever write of each life fails, and with whichever error.
func TestFailedWritesDoNotChangeTheOutcomeOfATrainingJob(t *testing.T) {
	for name, life := range trainingLives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, _ := testFailedWrites(t, func(t *testing.T, f fault) (*podWorld, breezeml.TrainingJob) {
				w := life.run(t, f)
				return w.podWorld, w.state()
			})
			if c := end.Status.ExecStatus.Conditions; c[len(c)-1].Type != life.ends {
				t.Fatalf("without a fault the job ends with the conditions %+v, want last %s", c, life.ends)
			}
		})
	}
}

func TestSteadyStateOfATrainingJobWritesNothing(t *testing.T) {
	for name, life := range trainingLives {
		t.Run(name, func(t *testing.T) { life.run(t, fault{}).checkNoMoreWrites(t) })
	}
}
