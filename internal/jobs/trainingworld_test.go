package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
)

// trainingSettings are those of the tests.
var trainingSettings = trainingjob.Settings{Group: breezeml.DefaultGroup, PendingTimeout: 5 * time.Minute, Cooldown: 3 * time.Hour}

// trainingWorld is a world with one TrainingJob ns/job instead of the JobSet, and a
// kubelet.
type trainingWorld struct {
	*world
	life trainingLife
	// acts are still to come, each when all pods run.
	acts []func(*trainingWorld)
	// stuckFor is how many pods of it still will be, since nobody can schedule them.
	stuckFor int
}

// trainingLife is what happens to a TrainingJob from its creation to its end.
type trainingLife struct {
	job   func() *breezeml.TrainingJob
	code  func(name, attempt string) int32
	acts  []func(*trainingWorld)
	stuck int
	ends  breezeml.JobConditionType
}

// newTrainingJob is ns/job with two to three workers that are made anew when a signal
// ends them, up to once.
func newTrainingJob() *breezeml.TrainingJob {
	job := &breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid"}}
	job.Spec.MinSize, job.Spec.MaxSize = ptr.To[int32](2), ptr.To[int32](3)
	job.Spec.ReplicaSpecs.RestartPolicy = breezeml.RestartExitCode
	job.Spec.RunPolicy.BackoffLimit = ptr.To[int32](1)
	job.Spec.RunPolicy.SchedulingPolicy = &breezeml.SchedulingPolicy{Queue: "cq"}
	job.Spec.ReplicaSpecs.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
	return job
}

// resizeTo has the queue grant another size.
func resizeTo(size int32) func(*trainingWorld) {
	return func(w *trainingWorld) {
		wl := list[kueue.WorkloadList](w.world).Items[0]
		wl.Status.Admission.PodSetAssignments[0].Count = &size
		w.updateStatus(&wl)
	}
}

func evict(w *trainingWorld) {
	wl := list[kueue.WorkloadList](w.world).Items[0]
	meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue,
		Reason: kueue.WorkloadEvictedByPreemption, Message: "because", LastTransitionTime: metav1.NewTime(epoch)})
	w.updateStatus(&wl)
}

func suspend(w *trainingWorld) { w.suspend(true) }

func (w *trainingWorld) suspend(is bool) {
	w.changes++
	job := w.trainingJob()
	job.Spec.RunPolicy.Suspend = &is
	if err := w.api.Update(w.t.Context(), job); err != nil {
		w.t.Fatal(err)
	}
}

// firstWorkerIsKilled once, by a signal.
func firstWorkerIsKilled(name, attempt string) int32 {
	if name == "job-worker-0" && attempt == "0" {
		return 137
	}
	return 0
}

var trainingLives = map[string]trainingLife{
	"queued, admitted, run, succeeded": {job: newTrainingJob, ends: breezeml.JobSucceeded},
	"restarted once":                   {job: newTrainingJob, code: firstWorkerIsKilled, ends: breezeml.JobSucceeded},
	"failed by itself":                 {job: newTrainingJob, code: func(string, string) int32 { return 1 }, ends: breezeml.JobFailed},
	"restarted too often":              {job: newTrainingJob, code: func(name, _ string) int32 { return map[string]int32{"job-worker-0": 137}[name] }, ends: breezeml.JobFailed},
	"shrunk, grown":                    {job: newTrainingJob, acts: []func(*trainingWorld){resizeTo(2), resizeTo(3)}, ends: breezeml.JobSucceeded},
	"evicted and run again":            {job: newTrainingJob, acts: []func(*trainingWorld){evict}, ends: breezeml.JobSucceeded},
	"suspended and resumed":            {job: newTrainingJob, acts: []func(*trainingWorld){suspend}, ends: breezeml.JobSucceeded},
	"stuck, and run later":             {job: newTrainingJob, stuck: 1, ends: breezeml.JobSucceeded},
}

// live has the life happen with the fault, and returns the world after it.
func (l trainingLife) live(t *testing.T, f fault) *trainingWorld {
	t.Helper()
	w := newWorld(t, f, l.job(), clusterQueue("cq"), flavor())
	w.job = "job"
	w.reconciler = jobs.NewReconciler(trainingjob.API(trainingSettings), w.watched(), w.events, w.clock)
	out := &trainingWorld{world: w, life: l, acts: l.acts, stuckFor: l.stuck}
	out.settle()
	return out
}

func (w *trainingWorld) trainingJob() *breezeml.TrainingJob {
	return &list[breezeml.TrainingJobList](w.world).Items[0]
}

// settle has everybody act in turn until nobody has anything left to do, nor later.
func (w *trainingWorld) settle() {
	w.t.Helper()
	for range 200 {
		before := w.changes
		due := w.reconcile().RequeueAfter
		w.admit()
		w.person()
		w.kubelet()
		if w.changes == before {
			if due == 0 {
				return
			}
			w.clock.SetTime(w.clock.Now().Add(due))
		}
	}
	w.t.Fatalf("no end is in sight; the last writes:\n%s", strings.Join(w.writes[max(0, len(w.writes)-20):], "\n"))
}

// person does what is to be done next, once all pods run.
func (w *trainingWorld) person() {
	job := w.trainingJob()
	switch {
	case ptr.Deref(job.Spec.RunPolicy.Suspend, false):
		if len(list[corev1.PodList](w.world).Items)+len(list[kueue.WorkloadList](w.world).Items) == 0 {
			w.suspend(false)
		}
	case len(w.acts) > 0 && w.runs(job):
		act := w.acts[0]
		w.acts = w.acts[1:]
		act(w)
	}
}

// runs reports whether the job runs with what it was granted, and tells so.
func (w *trainingWorld) runs(job *breezeml.TrainingJob) bool {
	s := &job.Status
	wls := list[kueue.WorkloadList](w.world).Items
	if len(wls) != 1 || wls[0].Status.Admission == nil || s.CurrentSize != *wls[0].Status.Admission.PodSetAssignments[0].Count {
		return false
	}
	pods := list[corev1.PodList](w.world).Items
	return s.Stage == breezeml.StageRunning && s.ExecStatus.ReplicaStatuses["Worker"].Active == s.CurrentSize && len(pods) == int(s.CurrentSize)
}

// kubelet moves every pod one step on. None ends while something is still to come.
func (w *trainingWorld) kubelet() {
	for _, pod := range list[corev1.PodList](w.world).Items {
		s := &pod.Status
		at := metav1.NewTime(epoch)
		switch {
		case !pod.DeletionTimestamp.IsZero():
			w.changes++
			pod.Finalizers = nil
			if err := w.api.Update(w.t.Context(), &pod); client.IgnoreNotFound(err) != nil {
				w.t.Fatal(err)
			}
			if w.stuckFor > 0 && w.trainingJob().Status.Stage == breezeml.StageRequeueCooldown {
				w.stuckFor--
			}
			continue
		case s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed:
			continue
		case s.Phase != corev1.PodRunning && w.stuckFor > 0:
			continue
		case s.Phase != corev1.PodRunning:
			s.Phase = corev1.PodRunning
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}
		case len(w.acts) > 0 || ptr.Deref(w.trainingJob().Spec.RunPolicy.Suspend, false) || !w.allOfThem():
			continue
		default:
			var code int32
			if w.life.code != nil {
				code = w.life.code(pod.Name, pod.Annotations["muster.dev/restarts"])
			}
			s.Phase, s.Conditions = corev1.PodSucceeded, nil
			if code != 0 {
				s.Phase = corev1.PodFailed
			}
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: at}}}}
		}
		w.updateStatus(&pod)
	}
}

// allOfThem reports whether no pod is still to start: then all end in their order.
func (w *trainingWorld) allOfThem() bool {
	n := 0
	for _, pod := range list[corev1.PodList](w.world).Items {
		if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" && pod.DeletionTimestamp.IsZero() {
			n++
		}
	}
	return n == int(w.trainingJob().Status.CurrentSize)
}

// trainingState is all that the cluster has, but for resourceVersions and times.
type trainingState struct {
	Jobs      []breezeml.TrainingJob
	Pods      []corev1.Pod
	Services  []corev1.Service
	Workloads []kueue.Workload
}

func (w *trainingWorld) trainingState() trainingState {
	s := trainingState{list[breezeml.TrainingJobList](w.world).Items, list[corev1.PodList](w.world).Items,
		list[corev1.ServiceList](w.world).Items, list[kueue.WorkloadList](w.world).Items}
	for i := range s.Jobs {
		s.Jobs[i].ResourceVersion = ""
		status := &s.Jobs[i].Status
		for _, at := range []**metav1.Time{&status.SubmitTime, &status.QueuedTime, &status.LastExecTime, &status.CompletionTime,
			&status.ExecStatus.StartTime, &status.ExecStatus.CompletionTime, &status.ExecStatus.LastReconcileTime} {
			if *at != nil {
				*at = &metav1.Time{} // that it is told stays
			}
		}
		for j := range status.ExecStatus.Conditions {
			c := &status.ExecStatus.Conditions[j]
			c.LastTransitionTime, c.LastUpdateTime = metav1.Time{}, metav1.Time{}
		}
	}
	for i := range s.Pods {
		s.Pods[i].ResourceVersion = ""
	}
	for i := range s.Services {
		s.Services[i].ResourceVersion = ""
	}
	for i := range s.Workloads {
		s.Workloads[i].ResourceVersion, s.Workloads[i].Annotations = "", nil
		for j := range s.Workloads[i].Status.Conditions {
			s.Workloads[i].Status.Conditions[j].LastTransitionTime = metav1.Time{}
		}
	}
	return s
}

// TestNoWriteThatFailsChangesTheEndOfATrainingJob: whichever write of its life fails, by
// whichever error, before it took effect or after, it comes to the same end, and each
// pod and each Service is made as often as without the fault.
func TestNoWriteThatFailsChangesTheEndOfATrainingJob(t *testing.T) {
	for name, life := range trainingLives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := life.live(t, fault{})
			want := good.trainingState()
			if c := want.Jobs[0].Status.ExecStatus.Conditions; c[len(c)-1].Type != life.ends {
				t.Fatalf("without a fault it ends %+v, want %s", c, life.ends)
			}
			for _, w := range want.Workloads {
				if !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) || len(w.Finalizers) != 0 {
					t.Fatalf("its Workload is not over: %+v", w)
				}
			}
			for _, f := range faults(good.writes) {
				t.Run(fmt.Sprintf("%s, after=%v, %s", f.write, f.after, apierrors.ReasonForError(f.err)), func(t *testing.T) {
					w := life.live(t, f)
					if diff := cmp.Diff(want, w.trainingState()); diff != "" {
						t.Errorf("the end is another (-fault-free +got):\n%s", diff)
					}
					if diff := cmp.Diff(good.made, w.made); diff != "" {
						t.Errorf("made how often (-fault-free +got):\n%s", diff)
					}
				})
			}
		})
	}
}

// TestATrainingJobAtRestIsSilent: whoever has nothing to do writes nothing.
func TestATrainingJobAtRestIsSilent(t *testing.T) {
	for name, life := range trainingLives {
		t.Run(name, func(t *testing.T) {
			w := life.live(t, fault{})
			before := len(w.writes)
			for range 3 {
				w.reconcile()
			}
			if got := w.writes[before:]; len(got) != 0 {
				t.Errorf("wrote %v", got)
			}
		})
	}
}
