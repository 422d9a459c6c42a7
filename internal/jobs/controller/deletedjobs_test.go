package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobsetv1alpha2 "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/genericjob"
	"github.com/musterhq/muster/internal/jobs/jobset"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
	"github.com/musterhq/muster/internal/jobs/vcjob"
	"github.com/musterhq/muster/internal/workload"
)

// keptWorld is a podWorld with an admitted job that runs.
type keptWorld struct {
	*podWorld
	object client.Object
}

// keptWorlds are such worlds by the API of the job.
var keptWorlds = map[string]func(*testing.T) keptWorld{
	"batch Job": func(t *testing.T) keptWorld {
		job := newBatchJob("cq", true)
		w := keptWorld{newPodWorld(t, fault{}, of(batchjob.API), job, clusterQueue("cq"), flavor()), job}
		w.start()
		w.podOf(w.batchJobs()[0])
		return w
	},
	"JobSet": func(t *testing.T) keptWorld {
		js := newJobSet("cq")
		js.Name = "job"
		w := keptWorld{newPodWorld(t, fault{}, of(jobset.API), js, clusterQueue("cq"), flavor()), js}
		w.start()
		for _, job := range w.batchJobs() {
			w.podOf(job)
		}
		return w
	},
	"GenericJob": func(t *testing.T) keptWorld {
		job := newGenericJob("cq")
		w := keptWorld{newPodWorld(t, fault{}, of(genericjob.API), job, clusterQueue("cq"), flavor()), job}
		return w.start()
	},
	"VCJob": func(t *testing.T) keptWorld {
		job := newVCJob()
		w := keptWorld{newPodWorld(t, fault{}, of(vcjob.API), job, clusterQueue("cq"), flavor()), job}
		return w.start()
	},
	"TrainingJob": func(t *testing.T) keptWorld {
		job := newTrainingJob()
		w := keptWorld{newPodWorld(t, fault{}, of(trainingjob.API(trainingSettings)), job, clusterQueue("cq"), flavor()), job}
		return w.start()
	},
}

// start admits the job and starts its pods, which do not end.
func (k keptWorld) start() keptWorld {
	k.mayEnd = func(*corev1.Pod) bool { return false }
	for range 8 {
		k.reconcile()
		k.admit()
		k.kubelet()
	}
	return k
}

func (k keptWorld) batchJobs() (out []*batchv1.Job) {
	all := list[batchv1.JobList](k.world).Items
	for i := range all {
		out = append(out, &all[i])
	}
	return out
}

// podOf creates a running pod of the Job, as the Job controller does.
func (k keptWorld) podOf(job *batchv1.Job) {
	labels := map[string]string{batchv1.ControllerUidLabel: string(job.UID)}
	if uid := job.Labels[jobsetv1alpha2.JobSetUIDKey]; uid != "" {
		labels[jobsetv1alpha2.JobSetUIDKey] = uid
	}
	k.put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name + "-x", Namespace: "ns", Labels: labels,
		Finalizers:      []string{kubeletsFinalizer},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}}})
	job.Status.Active, job.Status.StartTime = 1, ptr.To(metav1.NewTime(epoch))
	k.updateStatus(job)
}

// deleteKept deletes the object, which a finalizer of its user keeps.
func (k keptWorld) deleteKept(o client.Object) {
	k.t.Helper()
	if err := k.api.Get(k.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		k.t.Fatal(err)
	}
	o.SetFinalizers([]string{"example.com/mine"})
	if err := k.api.Update(k.t.Context(), o); err != nil {
		k.t.Fatal(err)
	}
	if err := k.api.Delete(k.t.Context(), o); err != nil {
		k.t.Fatal(err)
	}
	if err := k.api.Get(k.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		k.t.Fatal(err)
	}
	k.clock.SetTime(o.GetDeletionTimestamp().Time)
}

// pass reconciles the job a few times, each after the time that it asks for, with the kubelet in between.
func (k keptWorld) pass() {
	for range 8 {
		again := k.reconcile().RequeueAfter
		k.kubelet()
		k.clock.SetTime(k.clock.Now().Add(min(again, time.Minute)))
	}
}

// quota returns the Workloads that hold quota.
func (k keptWorld) quota() (names []string) {
	for _, wl := range list[kueue.WorkloadList](k.world).Items {
		if workload.HoldsQuota(&wl) && !workload.IsFinished(&wl) {
			names = append(names, wl.Name)
		}
	}
	return names
}

// TestAnEvictedJobThatAFinalizerKeepsStopsItsPods, in every API: nothing else would stop them. Its quota is given back
// when they are gone, and it never starts again.
func TestAnEvictedJobThatAFinalizerKeepsStopsItsPods(t *testing.T) {
	for name, start := range keptWorlds {
		for _, when := range []string{"evicted after its deletion", "evicted before its deletion"} {
			t.Run(name+" "+when, func(t *testing.T) {
				w := start(t)
				if len(list[corev1.PodList](w.world).Items) == 0 {
					t.Fatal("it has no pods")
				}
				if when == "evicted before its deletion" {
					w.evict()
				}
				w.deleteKept(w.object)
				w.pass()
				if when == "evicted after its deletion" {
					if len(list[corev1.PodList](w.world).Items) == 0 || len(w.quota()) == 0 {
						t.Fatal("its pods are stopped, or its quota is given back, without an eviction")
					}
					w.evict()
					w.reconcile()
					if len(w.quota()) == 0 {
						t.Fatal("its quota is given back while pods are left")
					}
				}
				w.pass()
				if left, held := list[corev1.PodList](w.world).Items, w.quota(); len(left) > 0 || len(held) > 0 {
					t.Errorf("there are %d pods, and quota is held by %v; want neither", len(left), held)
				}
				for _, job := range w.batchJobs() {
					if job.DeletionTimestamp.IsZero() &&
						(!*job.Spec.Suspend || job.Annotations[muster.QueuedAnnotation] != muster.QueuedByOwner) {
						t.Errorf("Job %s may create pods, or is unmarked: %+v", job.Name, job)
					}
				}
				before := len(w.writes)
				w.admit() // there may be nothing to admit
				w.pass()
				if len(w.writes) > before || len(list[kueue.WorkloadList](w.world).Items) > 0 {
					t.Errorf("it does not rest: %v", w.writes[before:])
				}
			})
		}
	}
}

// TestADeletedJobWithoutPodsKeepsNoQuota, nor a place in its queue: it will never have pods.
func TestADeletedJobWithoutPodsKeepsNoQuota(t *testing.T) {
	for name, start := range keptWorlds {
		for _, state := range []string{"that runs no more", "that waits"} {
			t.Run(name+" "+state, func(t *testing.T) {
				w := start(t)
				for _, pod := range list[corev1.PodList](w.world).Items {
					w.deleteKept(&pod)
				}
				for _, job := range w.batchJobs() {
					if job.Name != "job" {
						job.Spec.Suspend = ptr.To(true)
						if err := w.api.Update(t.Context(), job); err != nil {
							t.Fatal(err)
						}
					}
				}
				if state == "that waits" {
					wl := w.workload()
					wl.Status = kueue.WorkloadStatus{}
					w.updateStatus(wl)
				}
				w.kubelet()
				w.deleteKept(w.object)
				if w.reconcile(); len(list[kueue.WorkloadList](w.world).Items) == 0 {
					t.Error("its Workload is deleted before the garbage collector can do it")
				}
				w.pass()
				if left := list[kueue.WorkloadList](w.world).Items; len(left) > 0 {
					t.Errorf("Workload %+v, want none", left[0].Status)
				}
			})
		}
	}
}

// TestAJobThatIsDeletedWithoutWhatItOwnsIsLeftToTheGarbageCollector, which takes the Workload from it.
func TestAJobThatIsDeletedWithoutWhatItOwnsIsLeftToTheGarbageCollector(t *testing.T) {
	for name, start := range keptWorlds {
		w := start(t)
		w.deleteKept(w.object)
		w.object.SetFinalizers([]string{metav1.FinalizerOrphanDependents})
		if err := w.api.Update(t.Context(), w.object); err != nil {
			t.Fatal(err)
		}
		before := len(w.writes)
		if w.pass(); len(w.writes) > before {
			t.Errorf("%s: %v, want nothing", name, w.writes[before:])
		}
	}
}

// TestAnEvictedJobSetStopsThePodsOfJobsThatAFinalizerKeeps: the Job controller does nothing for a Job that is being
// deleted.
func TestAnEvictedJobSetStopsThePodsOfJobsThatAFinalizerKeeps(t *testing.T) {
	for _, names := range [][]string{{"job-leader-0"}, {"job-leader-0", "job-workers-0", "job-workers-1"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			w := keptWorlds["JobSet"](t)
			for _, job := range w.batchJobs() {
				if slices.Contains(names, job.Name) {
					w.deleteKept(job)
				}
			}
			w.pass()
			if n := len(list[corev1.PodList](w.world).Items); n != 3 {
				t.Fatalf("%d of 3 pods run, before any eviction", n)
			}
			w.evict()
			w.reconcile()
			if len(w.quota()) == 0 {
				t.Fatal("the quota is given back while pods are left")
			}
			for _, job := range w.batchJobs() { // the Job controller stops those that live
				if job.DeletionTimestamp.IsZero() {
					job.Status.Active = 0
					job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
					w.updateStatus(job)
				}
			}
			w.pass()
			for _, pod := range list[corev1.PodList](w.world).Items {
				if of := metav1.GetControllerOf(&pod); slices.Contains(names, of.Name) {
					t.Errorf("pod %s of Job %s runs on", pod.Name, of.Name)
				}
			}
			if held := w.quota(); len(held) > 0 {
				t.Errorf("quota is held by %v, want none", held)
			}
		})
	}
}
