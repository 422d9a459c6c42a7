package controller_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

func removePods(task *lattice.JobTaskSpec) { *task.Replicas = 0 }

// queueLabel returns a step that labels the job for the queue.
func queueLabel(queue string) func(*latticeWorld) {
	return func(w *latticeWorld) {
		w.edit(func(job *lattice.LatticeJob) { job.Labels = map[string]string{kueue.QueueLabel: queue} })
	}
}

func deleteQueue(w *latticeWorld) {
	w.t.Helper()
	for _, queue := range []client.Object{clusterQueue("cq"), userLocalQueue("cq")} {
		if err := w.api.Delete(w.t.Context(), queue); err != nil {
			w.t.Fatal(err)
		}
	}
}

// latticeChanges are changes after which a LatticeJob, as it is then, asks its queue for no pods.
var latticeChanges = map[string]func(*latticeWorld){
	"made invalid":                      changeTask(removeResources),
	"scaled to no pods":                 changeTask(removePods),
	"its queue deleted":                 deleteQueue,
	"labelled for a queue of Volcano's": queueLabel("volcanos"),
}

// TestChangeOfARunningLatticeJobDoesNotLoseItsQuota: the change has no effect on what runs. The job keeps its quota
// while it runs, and returns it when it ends or is evicted.
func TestChangeOfARunningLatticeJobDoesNotLoseItsQuota(t *testing.T) {
	for name, change := range latticeChanges {
		t.Run(name+", then ended", func(t *testing.T) {
			w := runWithVolcano(t)
			change(w)
			w.settle()
			if wl := w.workload(); wl == nil || wl.Status.Admission == nil || !wl.DeletionTimestamp.IsZero() ||
				len(wl.Spec.PodSets) != 1 || wl.Spec.PodSets[0].Count != 2 {
				t.Errorf("while it runs, its Workload is %+v; want one with quota for two pods", wl)
			}
			setVCJobPhase(volcano.Completed, "")(w)
			w.settle()
			if wl := w.workload(); w.latticeJob().Status.Phase != lattice.Succeeded ||
				!meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) || len(wl.Finalizers) != 0 {
				t.Errorf("it is %s; its Workload has the conditions %+v and the finalizers %v, want Succeeded, Finished and none",
					w.latticeJob().Status.Phase, wl.Status.Conditions, wl.Finalizers)
			}
		})
		t.Run(name+", then evicted", func(t *testing.T) {
			w := runWithVolcano(t)
			change(w)
			w.settle()
			w.evict()
			w.reconcile()
			if n := len(list[volcano.JobList](w.world).Items); n != 0 {
				t.Errorf("the evicted job still has %d VCJobs", n)
			}
			w.settle()
			if wl := w.workload(); wl != nil && wl.Status.Admission != nil {
				t.Errorf("the evicted job still holds quota: %+v", wl.Status)
			}
		})
	}
}

// TestJobMadeInvalidLeavesItsQueue: a job that has failed must not be admitted.
func TestJobMadeInvalidLeavesItsQueue(t *testing.T) {
	for name, admit := range map[string]bool{"while it waits": false, "once it is admitted": true} {
		t.Run(name, func(t *testing.T) {
			w := queueForVolcano(t)
			if admit {
				w.admit()
			}
			changeTask(removeResources)(w)
			w.settle()
			if phase := w.latticeJob().Status.Phase; phase != lattice.Failed {
				t.Errorf("the LatticeJob is %s, want Failed", phase)
			}
			if wl := w.workload(); wl != nil &&
				(!meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) || len(wl.Finalizers) != 0) {
				t.Errorf("its Workload is not finished, or has finalizers %v: %+v", wl.Finalizers, wl.Status.Conditions)
			}
		})
	}
}

// TestJobScaledToNoPodsLeavesItsQueue before Volcano gets it: it asks for no quota, but its Workload still does.
func TestJobScaledToNoPodsLeavesItsQueue(t *testing.T) {
	for name, admit := range map[string]bool{"while it waits": false, "once it is admitted": true} {
		t.Run(name, func(t *testing.T) {
			w := queueForVolcano(t)
			if admit {
				w.admit()
			}
			released := "change Workload " + w.workload().Name + " #1"
			changeTask(removePods)(w)
			w.settle()
			gone, created := slices.Index(w.writes, released), slices.Index(w.writes, "create Job job #1")
			if w.workload() != nil || gone < 0 || created < gone {
				t.Errorf("the Workload left is %v, writes = %v; want none, released before the VCJob is created", w.workload(), w.writes)
			}
			if phase := w.latticeJob().Status.Phase; phase != lattice.Running {
				t.Errorf("the LatticeJob is %s, want Running", phase)
			}
		})
	}
}
