package controller_test

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

// running is a fate: no Job ends.
func running(*batchv1.Job) batchv1.JobConditionType { return "" }

// userLocalQueue returns a LocalQueue of the ClusterQueue cq that a user created.
func userLocalQueue(name string) *kueue.LocalQueue {
	return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}}
}

// TestIsQueued checks which jobs get a Workload, and which run at once.
func TestIsQueued(t *testing.T) {
	owned := newJobSet("cq")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "outer",
		UID: "outer", Controller: ptr.To(true)}}
	ownedByOther := newJobSet("cq")
	ownedByOther.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Pipeline", Name: "outer",
		UID: "outer", Controller: ptr.To(true)}}
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
		"queue name":    {newJobSet("cq"), nil, 1, 0},
		"no queue name": {newJobSet(""), nil, 0, 3},
		"no queue name, user's LocalQueue default": {newJobSet(""), []client.Object{userLocalQueue("default")}, 1, 0},
		"owned by a job that would not create it":  {owned, nil, 1, 0},
		"owned by a kind that is not served":       {ownedByOther, nil, 1, 0},
		"another controller's":                     {foreign, nil, 0, 0},
		"no pods":                                  {empty, nil, 0, 0},
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

// TestLaterQueueDoesNotTakeInRunningJobs: a LocalQueue default does not queue jobs that were started without a queue.
func TestLaterQueueDoesNotTakeInRunningJobs(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet(""), clusterQueue("cq"), flavor())
	w.fate = running
	w.settle()
	w.put(userLocalQueue("default"))
	w.settle()
	if got := list[kueue.WorkloadList](w).Items; len(got) != 0 {
		t.Errorf("the running JobSet was queued: %v", got)
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
		t.Fatalf("LocalQueues were created without a ClusterQueue: %v", got)
	}
	w.put(clusterQueue("cq"))
	w.reconcile()
	if got := list[kueue.LocalQueueList](w).Items; len(got) != 1 || got[0].Name != "cq" ||
		got[0].Spec.ClusterQueue != "cq" {
		t.Errorf("LocalQueues = %v, want cq", got)
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
				t.Errorf("the LocalQueue was created again: %v", got)
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
		t.Errorf("Workloads = %+v, want one in queue cq", got)
	}
	if w.outcome() != "Completed" {
		t.Errorf("the JobSet ended %q, want Completed", w.outcome())
	}
}

// TestConflicts checks which conflicts are returned as errors, to be retried.
func TestConflicts(t *testing.T) {
	conflict := apierrors.NewConflict(jobset.Resource("any"), "any", errors.New("changed since"))
	for name, tc := range map[string]struct {
		write   string
		retried bool
	}{
		"change, which a watch event will follow":     {"status JobSet js #1", false},
		"create that lost a race for a ResourceQuota": {"create Job js-leader-0 #1", true},
	} {
		t.Run(name, func(t *testing.T) {
			js := newJobSet("")
			js.Spec.Suspend = ptr.To(true) // so that its status is written at once
			w := newWorld(t, fault{write: tc.write, err: conflict}, js)
			_, err := w.reconciler.Reconcile(t.Context(),
				ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "js"}})
			if !w.faultFired {
				t.Fatalf("the faulty write did not occur: %v", w.writes)
			}
			if retried := err != nil; retried != tc.retried {
				t.Errorf("error %v, want one: %v", err, tc.retried)
			}
		})
	}
}

// TestCreateInATerminatingNamespaceIsNoError: the job is deleted with the namespace, in which no event can be created
// either, so the create is not retried.
func TestCreateInATerminatingNamespaceIsNoError(t *testing.T) {
	terminating := apierrors.NewForbidden(batchv1.Resource("jobs"), "js-leader-0",
		errors.New("unable to create new content in namespace ns because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause,
		Message: "namespace ns is being terminated", Field: "metadata.namespace"}}
	w := newWorld(t, fault{write: "create Job js-leader-0 #1", err: terminating}, newJobSet(""))
	if _, err := w.reconciler.Reconcile(t.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "js"}}); err != nil || !w.faultFired {
		t.Errorf("error %v after the writes %v, want none after the refused create", err, w.writes)
	}
	for _, event := range w.events.events {
		t.Errorf("unexpected event %s", event)
	}
}

// TestEndOfAJobIsWrittenBeforeItsQuotaIsReturned: otherwise, if the operator was killed in between, the job could go on
// without quota.
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
				t.Fatalf("without a fault the JobSet ended %q, want %q", w.outcome(), name)
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
			again := newWorld(t, fault{write: w.writes[lastOf("status Workload")], err: apierrors.NewServiceUnavailable("")},
				newJobSet("cq"), clusterQueue("cq"), flavor())
			again.fate = fate
			for !again.faultFired && again.outcome() == "" {
				_, _ = again.reconciler.Reconcile(t.Context(),
					ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "js"}})
				if !again.faultFired {
					again.admit()
					again.runJobs()
				}
			}
			if again.outcome() != name {
				t.Errorf("the Workload's end was written when the JobSet's outcome was %q, want %q: %v", again.outcome(),
					name, again.writes)
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
	const want = "FlavorNotFound: No pods can be started: the ResourceFlavor f assigned to the job does not exist. Create it again, or delete the job"
	if !slices.Contains(w.events.events, want) {
		t.Errorf("events = %v, want %q", w.events.events, want)
	}
	ends = batchv1.JobComplete
	w.settle()
	if w.outcome() != "Completed" {
		t.Errorf("the running JobSet ended %q, want Completed", w.outcome())
	}
}

func TestNoJobStartsWithoutItsFlavor(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"))
	w.settle()
	if got := list[batchv1.JobList](w).Items; len(got) != 0 {
		t.Fatalf("%d Jobs were created without the node labels of their flavor", len(got))
	}
	w.put(flavor())
	w.settle()
	if w.outcome() != "Completed" {
		t.Errorf("once the flavor exists the JobSet ends %q, want Completed", w.outcome())
	}
	for _, job := range list[batchv1.JobList](w).Items {
		if diff := cmp.Diff(map[string]string{"pool": "f"}, job.Spec.Template.Spec.NodeSelector); diff != "" {
			t.Errorf("node selector of %s (-want +got):\n%s", job.Name, diff)
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
		t.Errorf("requeued after %v, want 40s, the rest of its TTL", result.RequeueAfter)
	}
	w.clock.SetTime(epoch.Add(time.Minute))
	w.reconcile()
	if got := list[jobset.JobSetList](w).Items; len(got) != 0 {
		t.Error("the JobSet exists after its TTL")
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
		t.Errorf("writes = %v, want none", w.writes)
	}
	missing := newWorld(t, fault{}) // a job that does not exist any more
	missing.reconcile()
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
		t.Errorf("creates = %v, want each Job once", got)
	}
}
