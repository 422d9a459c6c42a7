package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/musterhq/muster/internal/jobs/controller"
	jobsetapi "github.com/musterhq/muster/internal/jobs/jobset"
)

// cached is a client that lists Jobs like a cache: it returns its own objects, without copying them. All other reads go
// to the embedded client.
type cached struct {
	client.Client
	jobs []*batchv1.Job
}

func (c *cached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	found, ok := list.(*batchv1.JobList)
	if !ok {
		return c.Client.List(ctx, list, options...)
	}
	found.Items = make([]batchv1.Job, 0, len(c.jobs))
	for _, job := range c.jobs {
		found.Items = append(found.Items, *job)
	}
	return nil
}

// largeJobSet returns a function that reconciles a JobSet of this many running Jobs, with nothing left to do.
func largeJobSet(t testing.TB, size int) func() {
	w := &world{job: "js", events: &recorder{}, clock: clocktesting.NewFakePassiveClock(epoch), seen: map[string]int{},
		created: map[string]int{}}
	js := newJobSet("")
	js.Spec.ReplicatedJobs[1].Replicas = int32(size - 1)
	w.build(js, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	c := &cached{Client: w.api}
	r := controller.NewReconciler(jobsetapi.API, c, w.events, w.clock)
	reconcileOnce := func() ctrl.Result {
		result, err := r.Reconcile(context.Background(),
			reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "js"}})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	reconcileOnce()
	var created batchv1.JobList
	if err := w.api.List(context.Background(), &created); err != nil || len(created.Items) != size {
		t.Fatalf("%d Jobs were created (error %v), want %d", len(created.Items), err, size)
	}
	for i := range created.Items {
		created.Items[i].Status = batchv1.JobStatus{Active: 1, Ready: ptr.To[int32](1)}
		c.jobs = append(c.jobs, &created.Items[i])
	}
	reconcileOnce()
	w.clock.SetTime(epoch.Add(time.Minute))
	reconcileOnce() // the counts are written
	return func() {
		if result := reconcileOnce(); result.RequeueAfter != 0 {
			t.Fatalf("the JobSet is requeued: %+v", result)
		}
	}
}

// BenchmarkReconcile measures a reconcile by the number of Jobs of the JobSet.
func BenchmarkReconcile(b *testing.B) {
	for _, size := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("%d Jobs", size), func(b *testing.B) {
			reconcile := largeJobSet(b, size)
			for b.Loop() {
				reconcile()
			}
		})
	}
}
