package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/controller/waiting"
	"github.com/musterhq/muster/internal/jobs/write"
)

// TestAFailedPlanIsRetriedWhenItIsDue, if that is before the error's backoff is over: a job whose pods are refused must
// release its quota in time.
func TestAFailedPlanIsRetriedWhenItIsDue(t *testing.T) {
	now := testingclock.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	failed := errors.New("no")
	for name, tc := range map[string]struct {
		dueIn, dueIfDoneIn time.Duration
		want               time.Duration
	}{
		"due before the backoff is over": {15 * time.Second, 0, 15 * time.Second},
		"due after it":                   {2 * time.Hour, 0, waiting.LongestRetry},
		"not due":                        {0, 0, waiting.LongestRetry},
		"due before":                     {-time.Second, 0, waiting.LongestRetry},
		"due only if the plan succeeds":  {0, time.Second, waiting.LongestRetry},
	} {
		t.Run(name, func(t *testing.T) {
			r := failingReconciler(t, now, &failed, func(p *jobs.Plan) {
				if tc.dueIn != 0 {
					p.Due = now.Now().Add(tc.dueIn)
				}
				if tc.dueIfDoneIn != 0 {
					p.DueIfDone = now.Now().Add(tc.dueIfDoneIn)
				}
			})
			var wait time.Duration
			for range 20 {
				if _, err := r.Reconcile(t.Context(), theJob); !errors.Is(err, failed) {
					t.Fatalf("error %v, want that of the write", err)
				}
				wait = r.retries.When(theJob)
			}
			if wait != tc.want {
				t.Errorf("the reconcile is retried after %s, want %s", wait, tc.want)
			}
		})
	}
}

// TestARefusedWriteIsTriedAgainWithoutAnError: users cause refusals, and an operator's log and metrics of errors are
// about the operator.
func TestARefusedWriteIsTriedAgainWithoutAnError(t *testing.T) {
	now := testingclock.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	var failure error
	overtaken := false // by another writer, in another write of the plan
	r := failingReconciler(t, now, &failure, func(p *jobs.Plan) {
		if overtaken {
			gone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gone"}}
			changed := gone.DeepCopy()
			changed.Data = map[string]string{"key": "value"}
			p.Writes = append(p.Writes, write.Change(gone, changed))
		}
	})
	var waits []time.Duration
	reconcileAgain := func() {
		t.Helper()
		result, err := r.Reconcile(t.Context(), theJob)
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, result.RequeueAfter)
	}
	failure = apierrors.NewForbidden(corev1.Resource("configmaps"), "child", errors.New("exceeded quota"))
	for range 20 {
		reconcileAgain()
	}
	if waits[0] > time.Second || waits[1] <= waits[0] || waits[19] != waiting.LongestRetry {
		t.Errorf("refused writes are tried again after %v, want longer each time, up to %s", waits, waiting.LongestRetry)
	}
	failure = nil
	reconcileAgain()
	failure = apierrors.NewForbidden(corev1.Resource("configmaps"), "child", errors.New("exceeded quota"))
	if reconcileAgain(); waits[20] != 0 || waits[21] != waits[0] {
		t.Errorf("after a success it is tried again after %v, want not at all, and after the next refusal %s", waits[20:], waits[0])
	}
	overtaken = true
	if reconcileAgain(); waits[22] != waits[1] {
		t.Errorf("beside a write to an object that is gone a refused one is tried again after %v, want %s", waits[22:], waits[1])
	}
}

var theJob = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "job"}}

// failingReconciler returns a reconciler of a job whose plan creates a child, which fails with the error unless that is
// nil. edit changes the plan.
func failingReconciler(t *testing.T, now *testingclock.FakeClock, failure *error,
	edit func(*jobs.Plan)) *reconciler[*corev1.ConfigMap] {
	job := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "u"}}
	w := abandonedWorld(t, now, job, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	c := interceptor.NewClient(w.read.client.(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return *failure },
	})
	r := newReconciler(served[*corev1.ConfigMap]{abandonedAPI()}, c, c, write.NewExecutor(c, events.NewFakeRecorder(1000)),
		Settings{}, nil, nil, now)
	r.api.Plan = func(jobs.Seen[*corev1.ConfigMap]) jobs.Plan {
		p :=
			jobs.Plan{Batch: write.Batch{
				Writes: []write.Write{write.Create(
					&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child"}})}}}
		edit(&p)
		return p
	}
	r.api.Describe = func(*corev1.ConfigMap, jobs.Facts) jobs.Description { return jobs.Description{} }
	return r
}
