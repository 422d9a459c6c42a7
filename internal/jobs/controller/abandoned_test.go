package controller

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// abandonedAPI is an API whose pods are labelled with their job's UID.
func abandonedAPI() jobs.API[*corev1.ConfigMap] {
	return jobs.API[*corev1.ConfigMap]{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), PodLabel: "job"}
}

// noon is the time of tests, and eleven an hour earlier.
var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	eleven = noon.Add(-time.Hour)
)

// waitingWorkload returns a Workload with two pods that waits for quota.
func waitingWorkload() *kueue.Workload {
	return &kueue.Workload{Spec: kueue.WorkloadSpec{QueueName: "q", PodSets: []kueue.PodSet{{Name: "main", Count: 2}},
		Active: ptr.To(true)}}
}

// admittedWorkload returns one that was admitted at eleven.
func admittedWorkload() *kueue.Workload {
	w := waitingWorkload()
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main"}}}
	workload.SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved",
		"Quota reserved in ClusterQueue cq", eleven)
	workload.SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, "Admitted", "The workload is admitted", eleven)
	return w
}

// finishedWorkload returns one that has succeeded since.
func finishedWorkload() *kueue.Workload {
	w := admittedWorkload()
	workload.SetCondition(w, kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded", "", eleven)
	return w
}

// abandonedWorkload returns a Workload as Muster creates it for a job of the kind, changed by edit.
func abandonedWorkload(kind string, edit func(*kueue.Workload)) *kueue.Workload {
	w := waitingWorkload()
	w.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: workloads.Names(abandonedAPI().Kind, "job", "u")[0],
		Finalizers: []string{kueue.ResourceInUseFinalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: "job", UID: "u",
			Controller: ptr.To(true)}}}
	edit(w)
	return w
}

// abandonedPod returns a pod of that job.
func abandonedPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", Labels: map[string]string{"job": "u"}}}
}

// abandonedWorld returns the controller and an API server with the objects.
func abandonedWorld(t *testing.T, now clock.PassiveClock, objects ...client.Object) abandoned[*corev1.ConfigMap] {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&kueue.Workload{}).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				options := (&client.ListOptions{}).ApplyOptions(opts)
				options.FieldSelector = nil // the fake API server supports no != selectors
				return c.List(ctx, list, options)
			},
		}).Build()
	read := &reader[*corev1.ConfigMap]{api: served[*corev1.ConfigMap]{abandonedAPI()}, client: c, live: c}
	return abandoned[*corev1.ConfigMap]{api: abandonedAPI(), read: read,
		executor: write.NewExecutor(c, events.NewFakeRecorder(1000)), clock: now}
}

// TestAbandonDeletesWorkloadsOncePodsAreGone checks that the Workloads that Muster created for jobs of another
// controller are deleted, whether the jobs exist or not, each once no pod uses its quota, and that other Workloads are
// kept.
func TestAbandonDeletesWorkloadsOncePodsAreGone(t *testing.T) {
	of, pod := abandonedWorkload, abandonedPod()
	asItIs := func(*kueue.Workload) {}
	admitted := func(w *kueue.Workload) { w.Status = admittedWorkload().Status }
	for name, tc := range map[string]struct {
		workload *kueue.Workload
		pods     []client.Object
		matches  bool // whether the controller reconciles it
		deleted  bool
	}{
		"waiting":                  {of("ConfigMap", asItIs), nil, true, true},
		"with quota, without pods": {of("ConfigMap", admitted), nil, true, true},
		"with quota and a pod":     {of("ConfigMap", admitted), []client.Object{pod}, true, false},
		"of a job of another kind": {of("Secret", asItIs), nil, false, false},
		"created by a user":        {of("ConfigMap", func(w *kueue.Workload) { w.Name = "mine" }), nil, false, false},
		"without an owner": {of("ConfigMap", func(w *kueue.Workload) { w.OwnerReferences = nil }),
			nil, false, false},
		"with another finalizer": {of("ConfigMap",
			func(w *kueue.Workload) { w.Finalizers = append(w.Finalizers, "a/b") }), nil, true, false},
		"waiting, though there is a pod": {of("ConfigMap", asItIs), []client.Object{pod}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := abandonedWorld(t, clock.RealClock{}, append(tc.pods, tc.workload)...)
			key := client.ObjectKeyFromObject(tc.workload)
			if got := a.isMade(tc.workload); got != tc.matches {
				t.Fatalf("the Workload is reconciled: %v, want %v", got, tc.matches)
			} else if !got {
				return
			}
			var again bool
			for range 3 {
				result, err := a.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
				if err != nil {
					t.Fatal(err)
				}
				again = result.RequeueAfter > 0
			}
			if want := len(tc.pods) > 0 && !tc.deleted; again != want {
				t.Errorf("the Workload is requeued: %v, want %v", again, want)
			}
			err := a.read.client.Get(t.Context(), key, &kueue.Workload{})
			if gone := apierrors.IsNotFound(err); gone != tc.deleted {
				t.Errorf("the Workload is gone: %v (%v), want %v", gone, err, tc.deleted)
			}
		})
	}
}

// TestPodsOfAbandonedJobsAreListedLessAndLessOften checks the polling interval: each poll is a list, and the pods may
// run for weeks.
func TestPodsOfAbandonedJobsAreListedLessAndLessOften(t *testing.T) {
	for since, want := range map[time.Duration]time.Duration{
		-time.Second: podsLeftPoll, 0: podsLeftPoll, 10 * time.Second: podsLeftPoll, 4 * time.Minute: 30 * time.Second,
		240 * time.Hour: time.Minute,
	} {
		w := abandonedWorkload("ConfigMap", func(w *kueue.Workload) {
			w.Status, w.DeletionTimestamp = admittedWorkload().Status, &metav1.Time{Time: eleven}
		})
		a := abandonedWorld(t, clocktesting.NewFakePassiveClock(eleven.Add(since)), w, abandonedPod())
		result, err := a.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		if err != nil || result.RequeueAfter != want {
			t.Errorf("%v after the deletion the Workload is requeued after %v, want %v (error %v)", since,
				result.RequeueAfter, want, err)
		}
	}
}

// TestWorkloadsOfAFormerGroupAreDeletedOncePodsAreGone checks the Workloads of jobs of an API that was installed under
// another group: no controller runs these jobs, so that their Workloads would get quota, and keep it beyond the
// deletion of the job and of its namespace.
func TestWorkloadsOfAFormerGroupAreDeletedOncePodsAreGone(t *testing.T) {
	of := func(version string, status *kueue.Workload) *kueue.Workload {
		return abandonedWorkload("ConfigMap", func(w *kueue.Workload) {
			gv, err := schema.ParseGroupVersion(version)
			if err != nil {
				t.Fatal(err)
			}
			w.Name, w.OwnerReferences[0].APIVersion = workloads.Names(gv.WithKind("ConfigMap"), "job", "u")[0], version
			w.Status = status.Status
		})
	}
	running := admittedWorkload()
	for name, tc := range map[string]struct {
		workload         *kueue.Workload
		pod, jobDeleted  bool
		matches, deleted bool
		again            time.Duration
	}{
		"waiting": {workload: of("former.example.com/v1", waitingWorkload()),
			matches: true, deleted: true},
		"running": {workload: of("former.example.com/v1", running), pod: true, matches: true,
			again: longestPoll},
		"its pods have ended": {workload: of("former.example.com/v1", running), matches: true, deleted: true},
		"deleted, its pods run": {workload: of("former.example.com/v1", running), pod: true, jobDeleted: true,
			matches: true, again: podsLeftPoll},
		"deleted, its pods ended": {workload: of("former.example.com/v1", running), jobDeleted: true,
			matches: true, deleted: true},
		"finished":                   {workload: of("former.example.com/v1", finishedWorkload()), matches: true},
		"of the group of these days": {workload: of("v1", waitingWorkload())},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.workload}
			if tc.pod {
				objects = append(objects, abandonedPod())
			}
			a := abandonedWorld(t, clocktesting.NewFakePassiveClock(time.Now()), objects...)
			a.former = true
			if got := a.isMade(tc.workload); got != tc.matches {
				t.Fatalf("the Workload is reconciled: %v, want %v", got, tc.matches)
			} else if !got {
				return
			}
			if tc.jobDeleted {
				if err := a.read.client.Delete(t.Context(), tc.workload); err != nil {
					t.Fatal(err)
				}
			}
			var again time.Duration
			for range 3 {
				result, err := a.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tc.workload)})
				if err != nil {
					t.Fatal(err)
				}
				again = result.RequeueAfter
			}
			if again != tc.again {
				t.Errorf("the Workload is requeued after %v, want %v", again, tc.again)
			}
			var left kueue.Workload
			err := a.read.client.Get(t.Context(), client.ObjectKeyFromObject(tc.workload), &left)
			if gone := apierrors.IsNotFound(err); gone != tc.deleted {
				t.Errorf("the Workload is gone: %v (%v), want %v", gone, err, tc.deleted)
			} else if !gone && left.DeletionTimestamp.IsZero() == tc.jobDeleted {
				t.Errorf("the Workload is being deleted: %v, want %v", !left.DeletionTimestamp.IsZero(), tc.jobDeleted)
			}
		})
	}
}
