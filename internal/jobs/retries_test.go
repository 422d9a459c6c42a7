package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestAFailedPlanIsRetriedWhenItIsDue, if that is before the error's backoff is over: a job whose pods are refused must
// release its quota in time.
func TestAFailedPlanIsRetriedWhenItIsDue(t *testing.T) {
	now := testingclock.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "job"}}
	job := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "u"}}
	refused := errors.New("no")
	for name, tc := range map[string]struct {
		dueIn, dueIfDoneIn time.Duration
		want               time.Duration
	}{
		"due before the backoff is over": {15 * time.Second, 0, 15 * time.Second},
		"due after it":                   {2 * time.Hour, 0, longestRetry},
		"not due":                        {0, 0, longestRetry},
		"due before":                     {-time.Second, 0, longestRetry},
		"due only if the plan succeeds":  {0, time.Second, longestRetry},
	} {
		t.Run(name, func(t *testing.T) {
			w := abandonedWorld(t, now, job.DeepCopy(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
			r := w.reconciler
			r.retries = newRetries(now)
			r.client = interceptor.NewClient(r.client.(client.WithWatch), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return refused
				},
			})
			r.executor = NewExecutor(r.client, &fakeRecorder{})
			r.api.Plan = func(Seen[*corev1.ConfigMap]) Plan {
				var p Plan
				p.Writes = []Write{Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child"}})}
				if tc.dueIn != 0 {
					p.Due = now.Now().Add(tc.dueIn)
				}
				if tc.dueIfDoneIn != 0 {
					p.DueIfDone = now.Now().Add(tc.dueIfDoneIn)
				}
				return p
			}
			r.api.New = func() *corev1.ConfigMap { return &corev1.ConfigMap{} }
			r.api.Describe = func(*corev1.ConfigMap, Facts) Description { return Description{} }
			var wait time.Duration
			for range 20 {
				if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, refused) {
					t.Fatalf("error %v, want that of the write", err)
				}
				wait = r.retries.When(request)
			}
			if wait != tc.want {
				t.Errorf("the reconcile is retried after %s, want %s", wait, tc.want)
			}
		})
	}
}
