package jobs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// running lets no Job end.
func running(*batchv1.Job) batchv1.JobConditionType { return "" }

func userLocalQueue(name string) *kueue.LocalQueue {
	return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}}
}

// TestIsQueued checks which jobs get a Workload, and which run at once.
func TestIsQueued(t *testing.T) {
	owned := newJobSet("cq")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "outer", UID: "outer", Controller: ptr.To(true)}}
	ownedByOther := newJobSet("cq")
	ownedByOther.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Pipeline", Name: "outer", UID: "outer", Controller: ptr.To(true)}}
	foreign := newJobSet("cq")
	foreign.Spec.ManagedBy = ptr.To("example.com/other")
	empty := newJobSet("cq")
	empty.Spec.ReplicatedJobs = nil
	for name, tc := range map[string]struct {
		js        *jobset.JobSet
		objects   []client.Object
		workloads int
		jobs      int
	}{
		"who names a queue":                                      {newJobSet("cq"), nil, 1, 0},
		"not who names none":                                     {newJobSet(""), nil, 0, 3},
		"unless a person made a LocalQueue default":              {newJobSet(""), []client.Object{userLocalQueue("default")}, 1, 0},
		"not who is owned by a job that queues for it":           {owned, nil, 0, 3},
		"but who is owned by a kind that nobody serves":          {ownedByOther, nil, 1, 0},
		"another controller's is not touched at all":             {foreign, nil, 0, 0},
		"who has no pods asks for nothing, and no queue is made": {empty, nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fault{}, append(tc.objects, tc.js, clusterQueue("cq"), flavor())...)
			w.reconcile()
			w.reconcile()
			if got := len(list[kueue.WorkloadList](w).Items); got != tc.workloads {
				t.Errorf("%d Workloads, want %d", got, tc.workloads)
			}
			if got := len(list[batchv1.JobList](w).Items); got != tc.jobs {
				t.Errorf("%d Jobs, want %d", got, tc.jobs)
			}
		})
	}
}

func TestLaterQueueDoesNotTakeInRunningJobs(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet(""), clusterQueue("cq"), flavor())
	w.fate = running
	w.settle()
	w.put(userLocalQueue("default"))
	w.settle()
	if got := list[kueue.WorkloadList](w).Items; len(got) != 0 {
		t.Errorf("it was queued: %v", got)
	}
	for _, job := range list[batchv1.JobList](w).Items {
		if *job.Spec.Suspend {
			t.Errorf("%s was suspended", job.Name)
		}
	}
}

// put creates the object as a user would.
func (w *world) put(o client.Object) {
	w.t.Helper()
	if err := w.api.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func TestLocalQueueIsCreatedForALaterClusterQueue(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet("cq"), flavor())
	w.reconcile()
	if got := list[kueue.LocalQueueList](w).Items; len(got) != 0 {
		t.Fatalf("made %v", got)
	}
	w.put(clusterQueue("cq"))
	w.reconcile()
	if got := list[kueue.LocalQueueList](w).Items; len(got) != 1 || got[0].Name != "cq" || got[0].Spec.ClusterQueue != "cq" {
		t.Errorf("LocalQueues: %v", got)
	}
}

func TestDeletedLocalQueueIsNotRecreatedForRunningOrEndedJobs(t *testing.T) {
	for name, fate := range map[string]func(*batchv1.Job) batchv1.JobConditionType{"running": running, "ended": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"), flavor())
			if fate != nil {
				w.fate = fate
			}
			w.settle()
			if err := w.api.Delete(t.Context(), &list[kueue.LocalQueueList](w).Items[0]); err != nil {
				t.Fatal(err)
			}
			w.settle()
			if got := list[kueue.LocalQueueList](w).Items; len(got) != 0 {
				t.Errorf("made %v", got)
			}
		})
	}
}

func TestWaitingJobSetMovesToAnotherQueueWithItsWorkload(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet("typo"), clusterQueue("cq"), flavor())
	w.reconcile()
	js := w.jobSet()
	js.Labels[kueue.QueueLabel] = "cq"
	if err := w.api.Update(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := list[kueue.WorkloadList](w).Items; len(got) != 1 || got[0].Spec.QueueName != "cq" {
		t.Errorf("Workloads: %+v", got)
	}
	if w.outcome() != "Completed" {
		t.Error("it did not run")
	}
}

func TestConflicts(t *testing.T) {
	conflict := apierrors.NewConflict(jobset.Resource("any"), "any", errors.New("changed since"))
	for name, tc := range map[string]struct {
		write string
		again bool
	}{
		"a change that somebody was faster with waits for the watch":          {"status JobSet js #1", false},
		"a creation that lost a race for quota is tried again: no watch says": {"create Job js-leader-0 #1", true},
	} {
		t.Run(name, func(t *testing.T) {
			js := newJobSet("")
			js.Spec.Suspend = ptr.To(true) // which is told at once
			w := newWorld(t, fault{write: tc.write, err: conflict}, js)
			_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "js"}})
			if !w.faultFired {
				t.Fatalf("no such write: %v", w.writes)
			}
			if again := err != nil; again != tc.again {
				t.Errorf("error %v, want one: %v", err, tc.again)
			}
		})
	}
}

// TestCreateInATerminatingNamespaceIsNoError: the job goes with the namespace, no event can be created there, and the
// create is not retried.
func TestCreateInATerminatingNamespaceIsNoError(t *testing.T) {
	goes := apierrors.NewForbidden(batchv1.Resource("jobs"), "js-leader-0", errors.New("unable to create new content in namespace ns because it is being terminated"))
	goes.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Message: "namespace ns is being terminated", Field: "metadata.namespace"}}
	w := newWorld(t, fault{write: "create Job js-leader-0 #1", err: goes}, newJobSet(""))
	if _, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "js"}}); err != nil || !w.faultFired {
		t.Errorf("%v after %v", err, w.writes)
	}
	for _, event := range w.events.events {
		t.Errorf("told %s", event)
	}
}

// TestEndOfAJobIsWrittenBeforeItsQuotaIsReturned: otherwise an operator that dies in between would leave a job that
// may go on without quota.
func TestEndOfAJobIsWrittenBeforeItsQuotaIsReturned(t *testing.T) {
	for name, fate := range map[string]func(*batchv1.Job) batchv1.JobConditionType{
		"Completed": func(*batchv1.Job) batchv1.JobConditionType { return batchv1.JobComplete },
		"Failed":    func(*batchv1.Job) batchv1.JobConditionType { return batchv1.JobFailed },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"), flavor())
			w.fate = fate
			w.settle()
			if w.outcome() != name {
				t.Fatalf("it ended %q", w.outcome())
			}
			lastOf := func(prefix string) int {
				last := -1
				for i, write := range w.writes {
					if strings.HasPrefix(write, prefix) {
						last = i
					}
				}
				return last
			}
			again := newWorld(t, fault{write: w.writes[lastOf("status Workload")], err: apierrors.NewServiceUnavailable("")}, newJobSet("cq"), clusterQueue("cq"), flavor())
			again.fate = fate
			for !again.faultFired && again.outcome() == "" {
				_, _ = again.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "js"}})
				if !again.faultFired {
					again.admit()
					again.runJobs()
				}
			}
			if again.outcome() != name {
				t.Errorf("the Workload is told the end, and the JobSet does not have it: %v", again.writes)
			}
		})
	}
}

func TestMissingFlavorPreventsOnlyNewStarts(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"), flavor())
	ends := batchv1.JobConditionType("")
	w.fate = func(*batchv1.Job) batchv1.JobConditionType { return ends }
	w.settle()
	if err := w.api.Delete(t.Context(), flavor()); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	const says = "FlavorNotFound: No pods can be started: the ResourceFlavor f assigned to the job does not exist. Create it again, or delete the job"
	if !slices.Contains(w.events.events, says) {
		t.Errorf("events: %v", w.events.events)
	}
	ends = batchv1.JobComplete
	w.settle()
	if w.outcome() != "Completed" {
		t.Error("what ran could not end")
	}
}

func TestNoJobStartsWithoutItsFlavor(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"))
	w.settle()
	if got := list[batchv1.JobList](w).Items; len(got) != 0 {
		t.Fatalf("%d Jobs were made that do not know their nodes", len(got))
	}
	w.put(flavor())
	w.settle()
	if w.outcome() != "Completed" {
		t.Error("it did not run once the flavor was there")
	}
	for _, job := range list[batchv1.JobList](w).Items {
		if diff := cmp.Diff(map[string]string{"pool": "f"}, job.Spec.Template.Spec.NodeSelector); diff != "" {
			t.Errorf("%s (-want +got):\n%s", job.Name, diff)
		}
	}
}

func TestJobSetIsReconciledWhenDue(t *testing.T) {
	js := newJobSet("")
	js.Spec.TTLSecondsAfterFinished = ptr.To[int32](60)
	w := newWorld(t, fault{}, js)
	w.settle()
	w.clock.SetTime(epoch.Add(20 * time.Second))
	if result := w.reconcile(); result.RequeueAfter != 40*time.Second {
		t.Errorf("after %v, want the rest of the minute", result.RequeueAfter)
	}
	w.clock.SetTime(epoch.Add(time.Minute))
	w.reconcile()
	if got := list[jobset.JobSetList](w).Items; len(got) != 0 {
		t.Error("it is still there after its time to live")
	}
}

func TestDeletedJobIsLeftAlone(t *testing.T) {
	js := newJobSet("cq")
	js.Finalizers = []string{"foregroundDeletion"}
	w := newWorld(t, fault{}, js, clusterQueue("cq"))
	if err := w.api.Delete(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if len(w.writes) != 0 {
		t.Errorf("wrote %v", w.writes)
	}
	gone := newWorld(t, fault{})
	gone.reconcile()
}

// TestDeletedWorkloadStopsItsJobAndIsCreatedAgain: no queued job runs without quota.
func TestDeletedWorkloadStopsItsJobAndIsCreatedAgain(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"), flavor())
	w.fate = running
	w.settle()
	if err := w.api.Delete(t.Context(), &list[kueue.WorkloadList](w).Items[0]); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	for _, job := range list[batchv1.JobList](w).Items {
		if !*job.Spec.Suspend {
			t.Errorf("%s runs without quota", job.Name)
		}
	}
	w.settle()
	for _, job := range list[batchv1.JobList](w).Items {
		if *job.Spec.Suspend {
			t.Errorf("%s was not resumed", job.Name)
		}
	}
	if got := w.created; got["Job js-leader-0"] != 1 {
		t.Errorf("made %v", got)
	}
}
