package controller_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/genericjob"
)

// genericWorld is a podWorld with a GenericJob.
type genericWorld struct {
	*podWorld
	life genericLife
}

// genericLife describes what happens to a GenericJob from its creation to its end.
type genericLife struct {
	job  func() *tensorstack.GenericJob
	code func(name, attempt string) int32
	// evictions and pauses are how many are still to come, each when all pods run.
	evictions, pauses int
	// bounded means that the job's queue limits it to an hour, and pauses it then, instead of a user.
	bounded bool
	// sizes are the numbers of workers that the queue is still to grant, one after the other.
	sizes []int32
	// keepsRunning reports which pods do not end before the job has.
	keepsRunning func(name string) bool
	// extra returns another object of the cluster; nil for none.
	extra func() client.Object
	ends  tensorstack.JobPhase
}

// newGenericJob returns ns/job with a master and two workers that may each be restarted once.
func newGenericJob(queue string) *tensorstack.GenericJob {
	job := &tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid"}}
	if queue != "" {
		job.Spec.Scheduler = &tensorstack.SchedulePolicy{T9kScheduler: &tensorstack.T9kScheduler{Queue: queue, Priority: 7}}
	}
	for i, name := range []string{"master", "worker"} {
		spec := tensorstack.ReplicaSpec{Type: name, Replicas: ptr.To(int32(i + 1)),
			RestartPolicy: tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: 1}}
		spec.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
		job.Spec.ReplicaSpecs = append(job.Spec.ReplicaSpecs, spec)
	}
	job.Spec.Service = &tensorstack.ServiceOption{Ports: []corev1.ServicePort{{Port: 80}}}
	job.Spec.CleanUpPolicy = tensorstack.CleanUpUnfinished
	return job
}

// firstWorkerFails makes the first worker fail once, with exit code 3.
func firstWorkerFails(name, attempt string) int32 {
	if name == "job-worker-0" && attempt == "0" {
		return 3
	}
	return 0
}

// genericLives are the lives of GenericJobs that the tests of this file go through.
var genericLives = map[string]genericLife{
	"queued, admitted, run, succeeded": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") },
		ends: tensorstack.JobPhaseSucceeded},
	"without a queue": {job: func() *tensorstack.GenericJob { return newGenericJob("") },
		ends: tensorstack.JobPhaseSucceeded},
	"restarted once": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") }, code: firstWorkerFails,
		ends: tensorstack.JobPhaseSucceeded},
	"failed too often": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") },
		ends: tensorstack.JobPhaseFailed,
		code: func(name, _ string) int32 {
			if name == "job-worker-1" {
				return 1
			}
			return 0
		}},
	"succeeded by a rule, pods cleaned up": {job: func() *tensorstack.GenericJob {
		job := newGenericJob("cq")
		job.Spec.SuccessRules = []tensorstack.FinishRule{{"master": {intstr.FromInt32(0)}}}
		job.Spec.CleanUpPolicy = tensorstack.CleanUpAll
		return job
	}, ends: tensorstack.JobPhaseSucceeded},
	"evicted and run again": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") }, evictions: 1,
		ends: tensorstack.JobPhaseSucceeded},
	"paused and resumed": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") }, pauses: 1,
		ends: tensorstack.JobPhaseSucceeded},
	"paused without a queue": {job: func() *tensorstack.GenericJob { return newGenericJob("") }, pauses: 1,
		ends: tensorstack.JobPhaseSucceeded},
	"restarted after it was paused": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") },
		code: firstWorkerFails, pauses: 1, ends: tensorstack.JobPhaseSucceeded},
	"debugged, paused and resumed": {job: func() *tensorstack.GenericJob {
		job := newGenericJob("cq")
		job.Spec.RunMode = &tensorstack.RunMode{Debug: &tensorstack.DebugMode{Enabled: true}}
		return job
	}, pauses: 1, ends: tensorstack.JobPhaseSucceeded},
	"paused by its queue": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") },
		pauses: 1, bounded: true, ends: tensorstack.JobPhaseSucceeded},
	"paused by its queue with a prebuilt Workload": {job: namesAWorkload, pauses: 1, bounded: true, extra: prebuilt,
		ends: tensorstack.JobPhaseSucceeded},
	"shrunk, grown": {job: elasticJob, sizes: []int32{1, 2}, ends: tensorstack.JobPhaseSucceeded},
	"succeeded, other pods keep running": {job: keepsItsPods, keepsRunning: isWorker,
		ends: tensorstack.JobPhaseSucceeded},
	"succeeded, other pods run for too long": {job: keepsItsPods, keepsRunning: isWorker, bounded: true,
		ends: tensorstack.JobPhaseSucceeded},
	"with a PodGroup": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") }, extra: t9kPodGroups,
		ends: tensorstack.JobPhaseSucceeded},
	"with a PodGroup, restarted and paused": {job: func() *tensorstack.GenericJob { return newGenericJob("cq") },
		extra: t9kPodGroups,
		code:  firstWorkerFails, pauses: 1, ends: tensorstack.JobPhaseSucceeded},
}

// keepsItsPods returns a job that succeeds when its master does, and deletes no pods.
func keepsItsPods() *tensorstack.GenericJob {
	job := newGenericJob("cq")
	job.Spec.SuccessRules = []tensorstack.FinishRule{{"master": {intstr.FromInt32(0)}}}
	job.Spec.CleanUpPolicy = tensorstack.CleanUpNone
	return job
}

// elasticJob returns a job of one or two workers.
func elasticJob() *tensorstack.GenericJob {
	job := newGenericJob("cq")
	job.Spec.ReplicaSpecs[1].Template.Annotations = map[string]string{muster.MinReplicasAnnotation: "1"}
	return job
}

func isWorker(name string) bool { return strings.HasPrefix(name, "job-worker-") }

// namesAWorkload returns a job that names the Workload prebuilt.
func namesAWorkload() *tensorstack.GenericJob {
	job := newGenericJob("cq")
	job.Labels = map[string]string{kueue.PrebuiltWorkloadLabel: "prebuilt"}
	return job
}

func prebuilt() client.Object {
	return &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: "ns"}, Spec: kueue.WorkloadSpec{
		QueueName: "cq", Priority: ptr.To[int32](7),
		PodSets: genericjob.API.Describe(newGenericJob("cq"), jobs.Facts{}).PodSets}}
}

// t9kPodGroups returns the definition by which a cluster with t9k-scheduler is recognized.
func t9kPodGroups() client.Object {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "podgroups.scheduler.tensorstack.dev"}}
}

// begin returns the world in which the life starts, with the fault.
func (g genericLife) begin(t *testing.T, f fault) *genericWorld {
	t.Helper()
	queue := clusterQueue("cq")
	if g.bounded {
		queue.Annotations = map[string]string{muster.MaxDurationAnnotation: "1h"}
	}
	objects := []client.Object{g.job(), queue, flavor()}
	if g.extra != nil {
		objects = append(objects, g.extra())
	}
	w := &genericWorld{newPodWorld(t, f, of(genericjob.API), objects...), g}
	w.code, w.userAction, w.mayEnd, w.onCreate = g.code, w.act, w.endsNow, w.checkPodGroupExists
	return w
}

// checkPodGroupExists checks that no pod is created for t9k-scheduler before its PodGroup.
func (g *genericWorld) checkPodGroupExists(o client.Object) {
	if pod, ok := o.(*corev1.Pod); ok && pod.Spec.SchedulerName == tensorstack.T9kSchedulerName &&
		len(g.podGroups()) != 1 {
		g.t.Errorf("%s is created before its PodGroup", pod.Name)
	}
}

func (g *genericWorld) genericJob() *tensorstack.GenericJob {
	return &list[tensorstack.GenericJobList](g.world).Items[0]
}

// act evicts, resizes, pauses or resumes the job, whichever comes next, once all its pods run.
func (g *genericWorld) act() {
	job := g.genericJob()
	switch {
	case isPaused(job) && g.restsWithoutPods(job):
		g.life.pauses--
		g.pause(job, false)
	case isPaused(job), job.Status.Phase != tensorstack.JobPhaseRunning:
	case g.life.pauses > 0 && !g.life.bounded:
		g.pause(job, true)
	case len(g.life.sizes) > 0 && g.runsAsGranted(job):
		wl := g.workload()
		wl.Status.Admission.PodSetAssignments[1].Count = ptr.To(g.life.sizes[0])
		g.life.sizes = g.life.sizes[1:]
		g.updateStatus(wl)
	case g.life.evictions > 0:
		g.life.evictions--
		g.evict()
	}
}

// runsAsGranted reports whether the job's status has as many workers as were granted, all of which run, and there are
// no other pods.
func (g *genericWorld) runsAsGranted(job *tensorstack.GenericJob) bool {
	granted := int(*g.workload().Status.Admission.PodSetAssignments[1].Count)
	return len(job.Status.Tasks[1].Replicas) == granted && int(job.Status.Aggregate.Running) == granted+1 &&
		len(list[corev1.PodList](g.world).Items) == granted+1
}

// restsWithoutPods reports whether a paused job has no pods and no Workload, except one that it names.
func (g *genericWorld) restsWithoutPods(job *tensorstack.GenericJob) bool {
	return len(list[corev1.PodList](g.world).Items) == 0 &&
		(job.Labels[kueue.PrebuiltWorkloadLabel] != "" || len(list[kueue.WorkloadList](g.world).Items) == 0)
}

func isPaused(job *tensorstack.GenericJob) bool {
	return job.Spec.RunMode != nil && job.Spec.RunMode.Pause != nil && job.Spec.RunMode.Pause.Enabled
}

func (g *genericWorld) pause(job *tensorstack.GenericJob, is bool) {
	g.changes++
	if job.Spec.RunMode == nil {
		job.Spec.RunMode = &tensorstack.RunMode{}
	}
	job.Spec.RunMode.Pause = &tensorstack.PauseMode{Enabled: is}
	if err := g.api.Update(g.t.Context(), job); err != nil {
		g.t.Fatal(err)
	}
}

// endsNow reports whether the pod may end: not while the job is still to be paused, evicted or resized, and not after
// the job's end if the pod is to be deleted then.
func (g *genericWorld) endsNow(pod *corev1.Pod) bool {
	job := g.genericJob()
	over := job.Status.Phase == tensorstack.JobPhaseSucceeded || job.Status.Phase == tensorstack.JobPhaseFailed
	switch keepsRunning := g.life.keepsRunning != nil && g.life.keepsRunning(pod.Name); {
	case g.life.pauses > 0 || g.life.evictions > 0 || isPaused(job) || len(g.life.sizes) > 0:
		return false
	case g.life.sizes != nil && !g.allStarted():
		return false
	case over:
		return keepsRunning && !g.life.bounded
	default:
		return !keepsRunning && job.Status.Phase == tensorstack.JobPhaseRunning
	}
}

// allStarted reports whether as many pods as were granted have started.
func (g *genericWorld) allStarted() bool {
	n := 0
	for _, pod := range list[corev1.PodList](g.world).Items {
		if pod.Status.Phase != "" && pod.DeletionTimestamp.IsZero() {
			n++
		}
	}
	return n == int(*g.workload().Status.Admission.PodSetAssignments[1].Count)+1
}

// genericState holds the job without its resourceVersion and times, and the PodGroups.
type genericState struct {
	Job       tensorstack.GenericJob
	PodGroups []unstructured.Unstructured
}

func (g *genericWorld) genericState() genericState {
	s := genericState{Job: *g.genericJob(), PodGroups: g.podGroups()}
	s.Job.ResourceVersion = ""
	for j := range s.Job.Status.Conditions {
		s.Job.Status.Conditions[j].LastTransitionTime = metav1.Time{}
	}
	for i := range s.PodGroups {
		s.PodGroups[i].SetResourceVersion("")
	}
	return s
}

// t9kPodGroupKind is the kind of t9k-scheduler's gangs.
var t9kPodGroupKind = schema.GroupVersionKind{Group: "scheduler.tensorstack.dev", Version: "v1beta1", Kind: "PodGroup"}

// podGroups returns the PodGroups of t9k-scheduler.
func (g *genericWorld) podGroups() []unstructured.Unstructured {
	groups := &unstructured.UnstructuredList{}
	groups.SetGroupVersionKind(t9kPodGroupKind)
	if err := g.api.List(g.t.Context(), groups); err != nil {
		g.t.Fatal(err)
	}
	return groups.Items
}

// TestFailedWritesDoNotChangeTheOutcomeOfAGenericJob, whichever write of each life fails, and with whichever error.
func TestFailedWritesDoNotChangeTheOutcomeOfAGenericJob(t *testing.T) {
	for name, life := range genericLives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, beside := testFailedWrites(t, func(t *testing.T, f fault) (*podWorld, genericState) {
				w := life.begin(t, f)
				w.settle()
				return w.podWorld, w.genericState()
			})
			if wants := life.extra != nil && strings.HasPrefix(name, "with a PodGroup"); wants != (len(end.PodGroups) == 1) {
				t.Errorf("PodGroups = %v, want one: %v", end.PodGroups, wants)
			}
			if got := end.Job.Status.Phase; got != life.ends {
				t.Fatalf("without a fault it ends %q, want %q", got, life.ends)
			}
			for _, w := range beside.Workloads {
				if *w.Spec.Priority != 7 || w.Spec.QueueName != "cq" {
					t.Fatalf("the Workload is in queue %s with priority %d, want cq and 7", w.Spec.QueueName, *w.Spec.Priority)
				}
			}
		})
	}
}

func TestSteadyStateOfAGenericJobWritesNothing(t *testing.T) {
	for name, life := range genericLives {
		t.Run(name, func(t *testing.T) {
			w := life.begin(t, fault{})
			w.settle()
			w.checkNoMoreWrites(t)
		})
	}
}

// TestWritesOfAGenericJob checks that the life of a GenericJob takes, besides the creates of its pods and Services, at
// most three writes of its status, and five of its Workload and LocalQueue.
func TestWritesOfAGenericJob(t *testing.T) {
	for name, most := range map[string]int{"without a queue": 3, "queued, admitted, run, succeeded": 3 + 4 + 1} {
		w := genericLives[name].begin(t, fault{})
		w.settle()
		var others []string
		for _, write := range w.writes {
			if !strings.HasPrefix(write, "create Pod ") && !strings.HasPrefix(write, "create Service ") {
				others = append(others, write)
			}
		}
		if len(others) > most {
			t.Errorf("%s: writes besides creates of pods and Services: %v, want at most %d", name, others, most)
		}
	}
}
