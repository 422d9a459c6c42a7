package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/genericjob"
)

// genericWorld is a world with one GenericJob ns/job instead of the JobSet, and a
// kubelet.
type genericWorld struct {
	*world
	// code is the exit code of a pod, by its name and attempt; nil for 0.
	code func(name, attempt string) int32
	// evictions and pauses are still to come, each when all pods run.
	evictions, pauses int
}

// genericLife is what happens to a GenericJob from its creation to its end.
type genericLife struct {
	job               func() *tensorstack.GenericJob
	code              func(name, attempt string) int32
	evictions, pauses int
	ends              tensorstack.JobPhase
}

// newGenericJob is ns/job with a master and two workers that may each be restarted
// once.
func newGenericJob(queue string) *tensorstack.GenericJob {
	job := &tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid"}}
	if queue != "" {
		job.Spec.Scheduler = &tensorstack.SchedulePolicy{T9kScheduler: &tensorstack.T9kScheduler{Queue: queue, Priority: 7}}
	}
	for i, name := range []string{"master", "worker"} {
		spec := tensorstack.ReplicaSpec{Type: name, Replicas: ptr.To(int32(i + 1)), RestartPolicy: tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: 1}}
		spec.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
		job.Spec.ReplicaSpecs = append(job.Spec.ReplicaSpecs, spec)
	}
	job.Spec.Service = &tensorstack.ServiceOption{Ports: []corev1.ServicePort{{Port: 80}}}
	job.Spec.CleanUpPolicy = tensorstack.CleanUpUnfinished
	return job
}

// firstWorkerFails once, with the exit code 3.
func firstWorkerFails(name, attempt string) int32 {
	if name == "job-worker-0" && attempt == "0" {
		return 3
	}
	return 0
}

var genericLives = map[string]genericLife{
	"queued, admitted, run, succeeded": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") }, ends: tensorstack.JobPhaseSucceeded},
	"without a queue":                  {job: func() *tensorstack.GenericJob { return newGenericJob("") }, ends: tensorstack.JobPhaseSucceeded},
	"restarted once":                   {job: func() *tensorstack.GenericJob { return newGenericJob("cq") }, code: firstWorkerFails, ends: tensorstack.JobPhaseSucceeded},
	"failed once too often": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") }, ends: tensorstack.JobPhaseFailed,
		code: func(name, _ string) int32 {
			if name == "job-worker-1" {
				return 1
			}
			return 0
		}},
	"succeeded by a rule, and cleaned up": {job: func() *tensorstack.GenericJob {
		job := newGenericJob("cq")
		job.Spec.SuccessRules = []tensorstack.FinishRule{{"master": {intstr.FromInt32(0)}}}
		job.Spec.CleanUpPolicy = tensorstack.CleanUpAll
		return job
	}, ends: tensorstack.JobPhaseSucceeded},
	"evicted and run again":         {job: func() *tensorstack.GenericJob { return newGenericJob("cq") }, evictions: 1, ends: tensorstack.JobPhaseSucceeded},
	"paused and resumed":            {job: func() *tensorstack.GenericJob { return newGenericJob("cq") }, pauses: 1, ends: tensorstack.JobPhaseSucceeded},
	"paused without a queue":        {job: func() *tensorstack.GenericJob { return newGenericJob("") }, pauses: 1, ends: tensorstack.JobPhaseSucceeded},
	"restarted after it was paused": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") }, code: firstWorkerFails, pauses: 1, ends: tensorstack.JobPhaseSucceeded},
}

// live has the life happen with the fault, and returns the world after it.
func (l genericLife) live(t *testing.T, f fault) *genericWorld {
	t.Helper()
	w := newWorld(t, f, l.job(), clusterQueue("cq"), flavor())
	w.job = "job"
	w.reconciler = jobs.NewReconciler(genericjob.API, w.watched(), w.events, w.clock)
	g := &genericWorld{world: w, code: l.code, evictions: l.evictions, pauses: l.pauses}
	g.settle()
	return g
}

func (w *genericWorld) genericJob() *tensorstack.GenericJob {
	return &list[tensorstack.GenericJobList](w.world).Items[0]
}

// settle has everybody act in turn until nobody has anything left to do, nor later.
func (w *genericWorld) settle() {
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

// person evicts, pauses and resumes the job, once all its pods run.
func (w *genericWorld) person() {
	job := w.genericJob()
	if isPaused(job) {
		if len(list[corev1.PodList](w.world).Items) == 0 && len(list[kueue.WorkloadList](w.world).Items) == 0 {
			w.pause(job, false)
		}
		return
	}
	if job.Status.Phase != tensorstack.JobPhaseRunning {
		return
	}
	switch {
	case w.pauses > 0:
		w.pauses--
		w.pause(job, true)
	case w.evictions > 0:
		w.evictions--
		wl := list[kueue.WorkloadList](w.world).Items[0]
		meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue,
			Reason: kueue.WorkloadEvictedByPreemption, Message: "because", LastTransitionTime: metav1.NewTime(epoch)})
		w.updateStatus(&wl)
	}
}

func isPaused(job *tensorstack.GenericJob) bool {
	return job.Spec.RunMode != nil && job.Spec.RunMode.Pause.Enabled
}

func (w *genericWorld) pause(job *tensorstack.GenericJob, is bool) {
	w.changes++
	job.Spec.RunMode = &tensorstack.RunMode{Pause: &tensorstack.PauseMode{Enabled: is}}
	if err := w.api.Update(w.t.Context(), job); err != nil {
		w.t.Fatal(err)
	}
}

// kubelet moves every pod one step on. None ends while the job is still to be paused or
// evicted.
func (w *genericWorld) kubelet() {
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
			continue
		case s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed:
			continue
		case s.Phase != corev1.PodRunning:
			s.Phase = corev1.PodRunning
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}
		case w.pauses > 0 || w.evictions > 0 || isPaused(w.genericJob()) || w.genericJob().Status.Phase != tensorstack.JobPhaseRunning:
			continue
		default:
			var code int32
			if w.code != nil {
				code = w.code(pod.Name, pod.Annotations["muster.dev/restarts"])
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

// genericState is all that the cluster has, but for resourceVersions and times.
type genericState struct {
	Jobs      []tensorstack.GenericJob
	Pods      []corev1.Pod
	Services  []corev1.Service
	Workloads []kueue.Workload
}

func (w *genericWorld) genericState() genericState {
	s := genericState{list[tensorstack.GenericJobList](w.world).Items, list[corev1.PodList](w.world).Items,
		list[corev1.ServiceList](w.world).Items, list[kueue.WorkloadList](w.world).Items}
	for i := range s.Jobs {
		s.Jobs[i].ResourceVersion = ""
		for j := range s.Jobs[i].Status.Conditions {
			s.Jobs[i].Status.Conditions[j].LastTransitionTime = metav1.Time{}
		}
	}
	for i := range s.Pods {
		s.Pods[i].ResourceVersion = ""
	}
	for i := range s.Services {
		s.Services[i].ResourceVersion = ""
	}
	for i := range s.Workloads {
		s.Workloads[i].ResourceVersion = ""
		for j := range s.Workloads[i].Status.Conditions {
			s.Workloads[i].Status.Conditions[j].LastTransitionTime = metav1.Time{}
		}
	}
	return s
}

// TestNoWriteThatFailsChangesTheEndOfAGenericJob: whichever write of its life fails, by
// whichever error, before it took effect or after, it comes to the same end, and each
// pod and each Service is made as often as without the fault.
func TestNoWriteThatFailsChangesTheEndOfAGenericJob(t *testing.T) {
	for name, life := range genericLives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := life.live(t, fault{})
			want := good.genericState()
			if got := want.Jobs[0].Status.Phase; got != life.ends {
				t.Fatalf("without a fault it ends %q, want %q", got, life.ends)
			}
			for _, w := range want.Workloads {
				if !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) || len(w.Finalizers) != 0 {
					t.Fatalf("its Workload is not over: %+v", w)
				}
				if *w.Spec.Priority != 7 || w.Spec.QueueName != "cq" {
					t.Fatalf("its Workload is in %s with priority %d", w.Spec.QueueName, *w.Spec.Priority)
				}
			}
			for _, f := range faults(good.writes) {
				t.Run(fmt.Sprintf("%s, after=%v, %s", f.write, f.after, apierrors.ReasonForError(f.err)), func(t *testing.T) {
					w := life.live(t, f)
					if diff := cmp.Diff(want, w.genericState()); diff != "" {
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

// TestAGenericJobAtRestIsSilent: whoever has nothing to do writes nothing.
func TestAGenericJobAtRestIsSilent(t *testing.T) {
	for name, life := range genericLives {
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

// TestAGenericJobsLifeTakesFewWrites: its pods and Services, three of its status, and
// four of its Workload beside the admission.
func TestAGenericJobsLifeTakesFewWrites(t *testing.T) {
	for name, most := range map[string]int{"without a queue": 3, "queued, admitted, run, succeeded": 3 + 4 + 1} {
		w := genericLives[name].live(t, fault{})
		var others []string
		for _, write := range w.writes {
			if !strings.HasPrefix(write, "create Pod ") && !strings.HasPrefix(write, "create Service ") {
				others = append(others, write)
			}
		}
		if len(others) > most {
			t.Errorf("%s: beside pods and Services these are written: %v, want at most %d", name, others, most)
		}
	}
}
