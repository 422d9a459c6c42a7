package controller_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/jobs/genericjob"
	jobsetapi "github.com/musterhq/muster/internal/jobs/jobset"
	"github.com/musterhq/muster/internal/jobs/latticejob"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
	"github.com/musterhq/muster/internal/jobs/vcjob"
	"github.com/musterhq/muster/internal/workload"
)

// controlledBy returns an owner reference as every user who may change an object can set it.
func controlledBy(apiVersion, kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

const jobSetVersion = "jobset.x-k8s.io/v1alpha2"

// adopt makes the JobSet ns/js, or another object of that kind, the controller of the object.
func (w *world) adopt(object client.Object, name string, uid types.UID) {
	w.t.Helper()
	object.SetOwnerReferences(controlledBy(jobSetVersion, "JobSet", name, uid))
	if err := w.api.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// TestJobSetThatGetsAnOwnerFollowsItsWorkload: nobody else would stop its pods, or give its quota back.
func TestJobSetThatGetsAnOwnerFollowsItsWorkload(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"), flavor())
	w.fate = running
	w.settle()
	w.adopt(w.jobSet(), "outer", "outer")
	w.evictWorkload(&list[kueue.WorkloadList](w).Items[0])
	w.reconcile()
	for _, job := range list[batchv1.JobList](w).Items {
		if !*job.Spec.Suspend {
			t.Errorf("%s still runs after the eviction", job.Name)
		}
	}
	w.runJobs()
	w.reconcile()
	if workload.HoldsQuota(&list[kueue.WorkloadList](w).Items[0]) {
		t.Error("the quota is not given back once the pods are gone")
	}
}

// TestJobsAreQueuedByTheOwnersThatCreateThem, and not by others: users can set any owner reference on their jobs.
func TestJobsAreQueuedByTheOwnersThatCreateThem(t *testing.T) {
	foreign := newJobSet("cq")
	foreign.Name, foreign.UID, foreign.Spec.ManagedBy = "foreign", "foreign-uid", ptr.To("example.com/other")
	notController := controlledBy(jobSetVersion, "JobSet", "js", "js-uid")
	notController[0].Controller = nil
	w := newWorld(t, fault{}, newJobSet("cq"), foreign, newGenericJob(""))
	apis := []controller.Served{
		controller.Serve(jobsetapi.API), controller.Serve(genericjob.API),
		controller.Serve(trainingjob.API(trainingSettings)), controller.Serve(batchjob.API), controller.Serve(vcjob.API),
		controller.Serve(latticejob.New(latticejob.Settings{})),
	}
	named := func(name string, owners []metav1.OwnerReference) client.Object {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: owners}}
	}
	ofTheSet := controlledBy(jobSetVersion, "JobSet", "js", "js-uid")
	marked := func(mark string, owners []metav1.OwnerReference) client.Object {
		job := named("js-workers-1", owners)
		job.SetAnnotations(map[string]string{muster.QueuedAnnotation: mark})
		return job
	}
	gone := controlledBy(jobSetVersion, "JobSet", "js", "11111111-1111-1111-1111-111111111111")
	inner := newJobSet("cq")
	inner.Name, inner.OwnerReferences = "js-workers-0", ofTheSet
	training := newTrainingJob()
	training.OwnerReferences = controlledBy("batch.tensorstack.dev/v1beta1", "GenericJob", "job", "job-uid")
	for name, tc := range map[string]struct {
		job  client.Object
		want bool
	}{
		"Job of a JobSet":             {named("js-workers-1", ofTheSet), true},
		"made by the operator":        {marked(muster.QueuedByOwner, ofTheSet), true},
		"made by a user, in a queue":  {marked(muster.QueuedItself, ofTheSet), false},
		"made by a user, in no queue": {marked(muster.NotQueued, ofTheSet), false},
		"made by a user, of nothing":  {marked(muster.QueuedItself, gone), false},
		"in another version of the API": {named("js-workers-1",
			controlledBy("jobset.x-k8s.io/v1", "JobSet", "js", "js-uid")), true},
		"of a JobSet that is gone": {named("gone-workers-1",
			controlledBy(jobSetVersion, "JobSet", "gone", "gone-uid")), true},
		"of an earlier JobSet of the name": {named("js-workers-1",
			controlledBy(jobSetVersion, "JobSet", "js", "earlier")), true},
		"gone, in a version that does not exist": {named("gone-workers-1",
			controlledBy("jobset.x-k8s.io/v9", "JobSet", "gone", "gone-uid")), false},
		"without an owner":                          {named("js-workers-1", nil), false},
		"owned, not controlled":                     {named("js-workers-1", notController), false},
		"of a name that the JobSet does not give":   {named("job", ofTheSet), false},
		"of an index that the JobSet does not have": {named("js-workers-2", ofTheSet), false},
		"of an index in another spelling":           {named("js-workers-01", ofTheSet), false},
		"of a replicated job that does not exist":   {named("js-others-0", ofTheSet), false},
		"of another controller's JobSet": {named("foreign-workers-0",
			controlledBy(jobSetVersion, "JobSet", "foreign", "foreign-uid")), false},
		"of another kind of the group": {named("js-workers-1",
			controlledBy(jobSetVersion, "Other", "js", "js-uid")), false},
		"of the same kind in another group": {named("js-workers-1",
			controlledBy("example.com/v1", "JobSet", "js", "js-uid")), false},
		"of an invalid version":       {named("js-workers-1", controlledBy("a/b/c", "JobSet", "js", "js-uid")), false},
		"of a CronJob":                {named("js-workers-1", controlledBy("batch/v1", "CronJob", "js", "js-uid")), false},
		"JobSet of a JobSet":          {inner, false},
		"TrainingJob of a GenericJob": {training, false},
	} {
		t.Run(name, func(t *testing.T) {
			switch got, err := controller.QueuedByOwner(t.Context(), w.api, tc.job, apis...); {
			case err != nil:
				t.Fatal(err)
			case got != tc.want:
				t.Errorf("queued by its owner: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestRequiredQueueIsNotSkippedByAnOwner: a TrainingJob goes to a queue whoever it says its owner is.
func TestRequiredQueueIsNotSkippedByAnOwner(t *testing.T) {
	training := newTrainingJob()
	training.OwnerReferences = controlledBy("batch.tensorstack.dev/v1beta1", "GenericJob", "g", "g-uid")
	generic := newGenericJob("")
	generic.Name, generic.UID = "g", "g-uid"
	w := newPodWorld(t, fault{}, of(trainingjob.API(trainingSettings)), training, generic, clusterQueue("cq"), flavor())
	w.reconcile()
	if got := list[kueue.WorkloadList](w.world).Items; len(got) != 1 {
		t.Errorf("there are %d Workloads, want one", len(got))
	}
}

// TestBatchJobThatGetsAnOwnerFollowsItsWorkload, even if its name is one that the owner gives to its Jobs: it is still
// reconciled, stops when it is evicted, and gives its quota back.
func TestBatchJobThatGetsAnOwnerFollowsItsWorkload(t *testing.T) {
	for _, name := range []string{"job", "js-workers-0"} {
		t.Run(name, func(t *testing.T) {
			job := newBatchJob("cq", true)
			job.Name = name
			w := newBatchWorld(t, fault{}, job, 0)
			w.reconciler = controller.NewReconciler(batchjob.API, w.recordingClient(), w.events, w.clock,
				controller.Serve(jobsetapi.API))
			w.fate = running
			w.put(newJobSet(""))
			w.settle()
			w.adopt(w.batchJob(), "js", "js-uid")
			if !controller.Concerns(w.reconciler, w.batchJob()) {
				t.Error("the Job is not reconciled any more")
			}
			w.evictWorkload(&list[kueue.WorkloadList](w.world).Items[0])
			w.reconcile()
			if !*w.batchJob().Spec.Suspend {
				t.Error("the Job still runs after the eviction")
			}
		})
	}
}

// TestJobsOfAJobSetDoNotConcernTheQueuesOfBatchJobs: there may be thousands.
func TestJobsOfAJobSetDoNotConcernTheQueuesOfBatchJobs(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Name, job.OwnerReferences = "js-workers-0", controlledBy(jobSetVersion, "JobSet", "js", "js-uid")
	job.Annotations[muster.QueuedAnnotation] = muster.QueuedByOwner
	w := newBatchWorld(t, fault{}, job, 0)
	w.reconciler = controller.NewReconciler(batchjob.API, w.recordingClient(), w.events, w.clock,
		controller.Serve(jobsetapi.API))
	w.put(newJobSet(""))
	if controller.Concerns(w.reconciler, job) {
		t.Error("a Job that its JobSet is queued for is reconciled")
	}
	job.Name = "other"
	if !controller.Concerns(w.reconciler, job) {
		t.Error("a Job that its JobSet does not know is not reconciled")
	}
}

// TestJobSetDoesNotWaitForJobsThatAreNotItsOwn: neither for a Job of another name, nor for one that follows its own
// Workload. Otherwise an evicted JobSet would keep its quota for as long as these run. A Workload that has finished, or
// is of an earlier Job of the name, stops no Job: the JobSet does.
func TestJobSetDoesNotWaitForJobsThatAreNotItsOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		job    string
		change func(own *kueue.Workload)
		itsOwn bool
	}{
		"a Job of another name":               {"other", func(*kueue.Workload) {}, false},
		"a Job that follows its own Workload": {"js-workers-0", func(*kueue.Workload) {}, false},
		"a Job whose own Workload is finished": {"js-workers-0", func(own *kueue.Workload) {
			workload.SetCondition(own, kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded", "", epoch)
		}, true},
		"a Job whose predecessor had a Workload": {"js-workers-0",
			func(own *kueue.Workload) { own.OwnerReferences[0].UID = "earlier" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			other := newBatchJob("cq", false)
			other.Name, other.UID, other.Status.Active = tc.job, "other", 2
			other.OwnerReferences = controlledBy(jobSetVersion, "JobSet", "js", "js-uid")
			other.Annotations[muster.QueuedAnnotation] = muster.QueuedByOwner
			own := controller.WorkloadFor(batchv1.SchemeGroupVersion.WithKind("Job"), other)
			tc.change(own)
			w := newWorld(t, fault{}, newJobSet("cq"), other, own, clusterQueue("cq"), flavor())
			w.fate = running
			w.reconcile()
			w.admit()
			for _, wl := range list[kueue.WorkloadList](w).Items {
				if wl.Name != own.Name {
					w.evictWorkload(&wl)
				}
			}
			w.reconcile()
			w.reconcile()
			for _, wl := range list[kueue.WorkloadList](w).Items {
				if wl.Name != own.Name && workload.HoldsQuota(&wl) != tc.itsOwn {
					t.Errorf("while the Job has pods the evicted JobSet has quota: %v, want %v", !tc.itsOwn, tc.itsOwn)
				}
			}
			kept := &batchv1.Job{}
			if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(other), kept); err != nil {
				t.Fatal(err)
			}
			if *kept.Spec.Suspend != tc.itsOwn {
				t.Errorf("the JobSet suspended the Job: %v, want %v", *kept.Spec.Suspend, tc.itsOwn)
			}
		})
	}
}
