package controller_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/controller"
	jobsetapi "github.com/musterhq/muster/internal/jobs/jobset"
	"github.com/musterhq/muster/internal/workload"
)

// loseOwner takes the owner references from all Jobs, and changes them as told.
func (w *world) loseOwner(change func(*batchv1.Job)) {
	w.t.Helper()
	for _, job := range list[batchv1.JobList](w).Items {
		job.OwnerReferences = nil
		change(&job)
		if err := w.api.Update(w.t.Context(), &job); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestAnEvictedJobSetStopsTheJobsThatHaveLostIt: they are still its Jobs, and get it back as their controller. It gives
// its quota back when they have no pods.
func TestAnEvictedJobSetStopsTheJobsThatHaveLostIt(t *testing.T) {
	for name, change := range map[string]func(*batchv1.Job){
		"its reference":                   func(*batchv1.Job) {},
		"its reference and its labels":    func(job *batchv1.Job) { job.Labels = nil },
		"its reference, while it stopped": func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"), flavor())
			w.fate = running
			w.settle()
			w.evictWorkload(&list[kueue.WorkloadList](w).Items[0])
			w.loseOwner(change)
			for range 6 {
				w.reconcile()
				holds := workload.HoldsQuota(&list[kueue.WorkloadList](w).Items[0])
				for _, job := range list[batchv1.JobList](w).Items {
					if job.Status.Active > 0 && !holds {
						t.Fatalf("the quota is given back while Job %s has pods", job.Name)
					}
				}
				w.runJobs()
				for _, job := range list[batchv1.JobList](w).Items {
					if *job.Spec.Suspend && job.Status.Active == 0 && jobs.TrueCondition(&job, batchv1.JobSuspended) == nil {
						job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
						w.updateStatus(&job)
					}
				}
			}
			for _, job := range list[batchv1.JobList](w).Items {
				if owner := metav1.GetControllerOf(&job); !*job.Spec.Suspend || owner == nil || owner.UID != "js-uid" ||
					owner.Kind != "JobSet" {
					t.Errorf("Job %s: suspended %t, controller %v; want it suspended, and controlled by the JobSet", job.Name,
						*job.Spec.Suspend, owner)
				}
			}
			if workload.HoldsQuota(&list[kueue.WorkloadList](w).Items[0]) {
				t.Error("the JobSet keeps its quota although no pod is left")
			}
		})
	}
}

// TestARunningJobSetGetsItsLostJobsBack, and creates no others in their place.
func TestARunningJobSetGetsItsLostJobsBack(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"), flavor())
	w.fate = running
	w.settle()
	w.loseOwner(func(*batchv1.Job) {})
	w.settle()
	for _, job := range list[batchv1.JobList](w).Items {
		if metav1.GetControllerOf(&job) == nil || *job.Spec.Suspend {
			t.Errorf("Job %s: controller %v, suspended %t; want it to run under its JobSet", job.Name,
				metav1.GetControllerOf(&job), *job.Spec.Suspend)
		}
	}
	if n := len(list[batchv1.JobList](w).Items); n != 3 {
		t.Errorf("there are %d Jobs, want 3", n)
	}
}

// TestAJobSetThatIsDeletedWithoutItsJobsDoesNotTakeThemBack, though the cache does not show the deletion yet: the
// garbage collector would delete them with it.
func TestAJobSetThatIsDeletedWithoutItsJobsDoesNotTakeThemBack(t *testing.T) {
	for name, change := range map[string]func(*jobset.JobSet){
		"is being deleted": func(js *jobset.JobSet) {
			js.DeletionTimestamp, js.Finalizers = ptr.To(metav1.NewTime(epoch)), []string{metav1.FinalizerOrphanDependents}
		},
		"is another one of its name": func(js *jobset.JobSet) { js.UID = "later" },
		"is gone":                    func(js *jobset.JobSet) { js.Name = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"), flavor())
			w.fate = running
			w.settle()
			deleted := newJobSet("cq")
			change(deleted)
			controller.SetLive[*jobset.JobSet](w.reconciler, newWorld(t, fault{}, deleted).recordingClient())
			w.loseOwner(func(*batchv1.Job) {})
			w.reconcile()
			for _, job := range list[batchv1.JobList](w).Items {
				if owner := metav1.GetControllerOf(&job); owner != nil || *job.Spec.Suspend {
					t.Errorf("Job %s: controller %v, suspended %t; want it left alone", job.Name, owner, *job.Spec.Suspend)
				}
			}
		})
	}
}

// TestAJobThatNothingHoldsQuotaForIsSuspended, of those that the operator has created for a JobSet.
func TestAJobThatNothingHoldsQuotaForIsSuspended(t *testing.T) {
	holds := func(w *kueue.Workload) { w.Status.Admission = &kueue.Admission{ClusterQueue: "cq"} }
	for name, tc := range map[string]struct {
		job  func(*batchv1.Job)
		held func(*kueue.Workload) // nil for no Workload
		want bool
	}{
		"its JobSet was deleted without it": {func(*batchv1.Job) {}, holds, false},
		"its Workload gave its quota back":  {func(*batchv1.Job) {}, func(*kueue.Workload) {}, true},
		"its Workload is finished": {func(*batchv1.Job) {}, func(w *kueue.Workload) {
			holds(w)
			workload.SetCondition(w, kueue.WorkloadFinished, metav1.ConditionTrue,
				kueue.WorkloadFinishedReasonOwnerNotFound, "", epoch)
		}, true},
		"its Workload is gone": {func(*batchv1.Job) {}, nil, true},
		"the Workload is of another job": {func(*batchv1.Job) {}, func(w *kueue.Workload) {
			holds(w)
			w.Labels[kueue.JobUIDLabel] = "another"
		}, true},
		"its own labels are changed": {func(job *batchv1.Job) { job.Labels = nil }, holds, false},
		"it has another controller": {func(job *batchv1.Job) {
			job.OwnerReferences = controlledBy("batch/v1", "CronJob", "c", "c-uid")
		}, nil, true},
		"it is in no queue": {func(job *batchv1.Job) {
			job.Annotations[muster.QueuedAnnotation] = muster.NotQueued
		}, nil, false},
		"it has no mark": {func(job *batchv1.Job) { job.Annotations = nil }, nil, false},
		"it is complete": {func(job *batchv1.Job) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}, nil, false},
		"its JobSet is about to be gone": {func(job *batchv1.Job) {
			job.OwnerReferences = controlledBy(jobSetVersion, "JobSet", "js", "js-uid")
		}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{jobset.JobSetUIDKey: "js-uid"}
			job := newBatchJob("", false)
			job.Name, job.Labels, job.Annotations = "js-workers-0", labels,
				map[string]string{muster.QueuedAnnotation: muster.QueuedByOwner}
			job.Spec.Template.Labels = map[string]string{jobset.JobSetUIDKey: "js-uid"}
			tc.job(job)
			w := newBatchWorld(t, fault{}, job, 0)
			w.reconciler = controller.NewReconciler(batchjob.API, w.recordingClient(), w.events, w.clock,
				controller.Serve(jobsetapi.API))
			if tc.held != nil {
				held := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "jobset-js",
					Labels: map[string]string{kueue.JobUIDLabel: "js-uid"}}}
				tc.held(held)
				w.put(held)
			}
			again := w.reconcile().RequeueAfter
			if got := ptr.Deref(w.batchJob().Spec.Suspend, false); got != tc.want {
				t.Errorf("suspended: %t, want %t", got, tc.want)
			}
			if !tc.want && tc.held != nil && again == 0 {
				t.Error("it is not looked at again, although nothing reports when the quota is given back")
			}
			before := len(w.writes)
			if w.reconcile(); len(w.writes) != before {
				t.Errorf("it is written again: %v", w.writes[before:])
			}
		})
	}
}

// TestALostJobIsQueuedByItsUser: the label that the event on it names takes it into a queue.
func TestALostJobIsQueuedByItsUser(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Annotations[muster.QueuedAnnotation] = muster.QueuedByOwner
	w := newBatchWorld(t, fault{}, job, 0)
	w.reconciler = controller.NewReconciler(batchjob.API, w.recordingClient(), w.events, w.clock,
		controller.Serve(jobsetapi.API))
	w.settle()
	if got := w.batchJob(); jobs.TrueCondition(got, batchv1.JobComplete) == nil ||
		got.Annotations[muster.QueuedAnnotation] != muster.QueuedItself {
		t.Errorf("Job %+v, want it to have run in its queue", got)
	}
}
