package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/vcjob"
)

// vcjobWorld is a podWorld with a VCJob.
type vcjobWorld struct {
	*podWorld
	life vcjobLife
	// actions are what the user and the queue are still to do, in turn.
	actions []vcjobAction
}

// vcjobAction is something that the user or the queue does once the job is in a state.
type vcjobAction struct {
	once func(*vcjobWorld) bool
	do   func(*vcjobWorld)
}

// vcjobLife describes what happens to a VCJob from its creation to its end.
type vcjobLife struct {
	change  func(*volcano.JobSpec)
	code    func(name, attempt string) int32
	actions []vcjobAction
	// keepsRunning reports which pods do not end by themselves.
	keepsRunning func(name string) bool
	ends         volcano.JobPhase
	// retries is how often it is restarted.
	retries int32
}

// newVCJob returns ns/job with a master and a worker. Each pod more costs the tests that let every write fail some
// time.
func newVCJob() *volcano.Job {
	job := &volcano.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid", Generation: 1,
		CreationTimestamp: metav1.NewTime(epoch)}}
	job.Spec.Queue, job.Spec.MaxRetry = "cq", 3
	for _, name := range []string{"master", "worker"} {
		task := volcano.TaskSpec{Name: name, Replicas: 1}
		task.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		task.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
		job.Spec.Tasks = append(job.Spec.Tasks, task)
	}
	return job
}

// on returns a change of the job's spec: the action follows from the event.
func on(event bus.Event, action bus.Action) func(*volcano.JobSpec) {
	return func(spec *volcano.JobSpec) {
		spec.Policies = append(spec.Policies, volcano.LifecyclePolicy{Event: event, Action: action})
	}
}

// twoWorkers returns a change that also gives the job a second worker.
func twoWorkers(change func(*volcano.JobSpec)) func(*volcano.JobSpec) {
	return func(spec *volcano.JobSpec) {
		change(spec)
		spec.Tasks[1].Replicas = 2
	}
}

// restartsOnce is a change of the job's spec: it is restarted when a pod fails, the first time.
func restartsOnce(spec *volcano.JobSpec) {
	on(bus.PodFailedEvent, bus.RestartJobAction)(spec)
	spec.MaxRetry = 2
}

// firstWorkerFailsAlways makes the first worker of each attempt fail.
func firstWorkerFailsAlways(name, _ string) int32 { return map[string]int32{"job-worker-0": 3}[name] }

func isNotMaster(name string) bool { return name != "job-master-0" }

// command returns an action: a Command, once the job is in the state.
func command(action bus.Action, once func(*vcjobWorld) bool) vcjobAction {
	return vcjobAction{once, func(w *vcjobWorld) {
		w.changes++
		w.put(&bus.Command{Action: action, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(action),
			UID: types.UID(action), CreationTimestamp: metav1.NewTime(epoch),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.vcjob(), vcjob.API.Kind)}},
			TargetObject: metav1.NewControllerRef(w.vcjob(), vcjob.API.Kind)})
	}}
}

// scale returns an action: the tasks get this many pods.
func scale(once func(*vcjobWorld) bool, replicas ...int32) vcjobAction {
	return vcjobAction{once, func(w *vcjobWorld) {
		w.changes++
		job := w.vcjob()
		for i, n := range replicas {
			job.Spec.Tasks[i].Replicas = n
		}
		job.Generation++
		if err := w.api.Update(w.t.Context(), job); err != nil {
			w.t.Fatal(err)
		}
	}}
}

func evictVCJob(w *vcjobWorld) { w.evict() }

// deleteWorker deletes a pod as a user would.
func deleteWorker(w *vcjobWorld) {
	w.changes++
	if err := w.api.Delete(w.t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job-worker-0"}}); err != nil {
		w.t.Fatal(err)
	}
}

// vcjobLives are the lives of VCJobs that the tests of this file go through.
var vcjobLives = map[string]vcjobLife{
	"queued, admitted, run, completed": {ends: volcano.Completed},
	"failed":                           {code: firstWorkerFailsAlways, ends: volcano.Failed},
	"restarted": {change: on(bus.PodFailedEvent, bus.RestartJobAction), code: workerFailsOnce,
		ends: volcano.Completed, retries: 1},
	"a task restarted": {change: twoWorkers(on(bus.PodFailedEvent, bus.RestartTaskAction)), code: workerFailsOnce,
		ends: volcano.Completed, retries: 1},
	"a pod restarted": {change: twoWorkers(on(bus.PodFailedEvent, bus.RestartPodAction)), code: workerFailsOnce,
		ends: volcano.Completed, retries: 1},
	"restarted too often": {change: restartsOnce, code: firstWorkerFailsAlways, ends: volcano.Failed, retries: 2},
	"completed by its master": {change: func(spec *volcano.JobSpec) { spec.MinSuccess = ptr.To[int32](1) },
		keepsRunning: isNotMaster, ends: volcano.Completed},
	"with a task that depends on another": {change: func(spec *volcano.JobSpec) {
		spec.Tasks[1].DependsOn = &volcano.DependsOn{Name: []string{"master"}}
	}, ends: volcano.Completed},
	"evicted and run again": {actions: []vcjobAction{{runsFully, evictVCJob}}, ends: volcano.Completed},
	"a pod deleted":         {actions: []vcjobAction{{runsFully, deleteWorker}}, ends: volcano.Completed},
	"a pod deleted, restarted": {change: on(bus.PodEvictedEvent, bus.RestartJobAction),
		actions: []vcjobAction{{runsFully, deleteWorker}}, ends: volcano.Completed, retries: 1},
	"aborted and resumed": {actions: []vcjobAction{command(bus.AbortJobAction, runsFully),
		command(bus.ResumeJobAction, rests)}, ends: volcano.Completed},
	"terminated": {actions: []vcjobAction{command(bus.TerminateJobAction, runsFully)},
		ends: volcano.Terminated},
	"restarted by a Command": {actions: []vcjobAction{command(bus.RestartJobAction, runsFully)},
		ends: volcano.Completed, retries: 1},
	"scaled to no pods and back": {actions: []vcjobAction{scale(runsFully, 0, 0), scale(rests, 1, 1)},
		ends: volcano.Completed},
}

// workerFailsOnce makes the first worker of the first attempt fail.
func workerFailsOnce(name, attempt string) int32 {
	if attempt != "0" {
		return 0
	}
	return firstWorkerFailsAlways(name, attempt)
}

// run goes through the life with the fault, and returns the world after it.
func (v vcjobLife) run(t *testing.T, f fault) *vcjobWorld {
	t.Helper()
	job := newVCJob()
	if v.change != nil {
		v.change(&job.Spec)
	}
	w := &vcjobWorld{newPodWorld(t, f, of(vcjob.API), job, clusterQueue("cq"), flavor()), v, v.actions}
	w.code, w.userAction = v.code, w.act
	w.mayEnd = func(pod *corev1.Pod) bool {
		return len(w.actions) == 0 && runsFully(w) && (v.keepsRunning == nil || !v.keepsRunning(pod.Name))
	}
	w.settle()
	return w
}

func (v *vcjobWorld) vcjob() *volcano.Job { return &list[volcano.JobList](v.world).Items[0] }

// act does the next action once the job is in its state.
func (v *vcjobWorld) act() {
	if len(v.actions) > 0 && v.actions[0].once(v) {
		act := v.actions[0].do
		v.actions = v.actions[1:]
		act(v)
	}
}

// runsFully reports whether the job runs, and all its pods have started or ended.
func runsFully(w *vcjobWorld) bool {
	var started, total int32
	for _, task := range w.vcjob().Spec.Tasks {
		total += task.Replicas
	}
	for _, pod := range list[corev1.PodList](w.world).Items {
		if !pod.DeletionTimestamp.IsZero() {
			return false
		}
		if pod.Status.Phase != "" && pod.Status.Phase != corev1.PodPending {
			started++
		}
	}
	return w.vcjob().Status.State.Phase == volcano.Running &&
		len(list[bus.CommandList](w.world).Items) == 0 && started == total
}

// rests reports whether the job has neither pods nor a Workload.
func rests(w *vcjobWorld) bool {
	return len(list[corev1.PodList](w.world).Items)+len(list[kueue.WorkloadList](w.world).Items)+
		len(list[bus.CommandList](w.world).Items) == 0
}

// state returns the job without its resourceVersion and times.
func (v *vcjobWorld) state() volcano.Job {
	job := *v.vcjob()
	job.ResourceVersion = ""
	job.Status.State.LastTransitionTime, job.Status.RunningDuration = metav1.Time{}, nil
	for i := range job.Status.Conditions {
		job.Status.Conditions[i].LastTransitionTime = nil
	}
	return job
}

// TestFailedWritesDoNotChangeTheOutcomeOfAVCJob, whichever write of each life fails, and with whichever error.
func TestFailedWritesDoNotChangeTheOutcomeOfAVCJob(t *testing.T) {
	for name, life := range vcjobLives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, _ := testFailedWrites(t, func(t *testing.T, f fault) (*podWorld, volcano.Job) {
				w := life.run(t, f)
				return w.podWorld, w.state()
			})
			if got := end.Status; got.State.Phase != life.ends || got.RetryCount != life.retries {
				t.Fatalf("without a fault it ends %q after %d restarts, want %q after %d", got.State.Phase, got.RetryCount,
					life.ends, life.retries)
			}
		})
	}
}

func TestSteadyStateOfAVCJobWritesNothing(t *testing.T) {
	for name, life := range vcjobLives {
		t.Run(name, func(t *testing.T) { life.run(t, fault{}).checkNoMoreWrites(t) })
	}
}

// TestVCJobScaledToNoPodsReturnsItsQuota, and says that it has no pods.
func TestVCJobScaledToNoPodsReturnsItsQuota(t *testing.T) {
	w := vcjobLife{actions: []vcjobAction{scale(runsFully, 0, 0)}}.run(t, fault{})
	if state := w.vcjob().Status.State; !rests(w) || state.Phase != volcano.Pending || state.Reason != volcano.NoPods {
		t.Errorf("it is %+v, with the Workloads %v; want it Pending for %s with none", state,
			list[kueue.WorkloadList](w.world).Items, volcano.NoPods)
	}
}
