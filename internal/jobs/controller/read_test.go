package controller

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// TestRelatedObjectsAreSharedWithTheCache: a user may have each of many jobs refer to many large objects, of which
// copies would fill the operator's memory.
func TestRelatedObjectsAreSharedWithTheCache(t *testing.T) {
	there := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "there"}}
	copied := 0
	r := &reader[*batchv1.Job]{
		api: served[*batchv1.Job]{
			jobs.API[*batchv1.Job]{Reads: jobs.Reads[*batchv1.Job]{Related: func(*batchv1.Job) []client.Object {
				return []client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "there"}},
					&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}}
			}}}},
		client: fake.NewClientBuilder().WithObjects(there).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
				options ...client.GetOption) error {
				var got client.GetOptions
				if got.ApplyOptions(options); !ptr.Deref(got.UnsafeDisableDeepCopy, false) {
					copied++
				}
				return c.Get(ctx, key, object)
			},
		}).Build(),
	}
	found, err := r.related(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"}})
	if err != nil || len(found) != 1 || found[0].GetName() != "there" {
		t.Errorf("related objects: %v, %v, want the one that exists", found, err)
	}
	if copied > 0 {
		t.Errorf("%d of them are copied", copied)
	}
}

// TestWhatUsersMakeForAJobIsSharedWithTheCache: of what is meant for a job, or was left by one, users may have any
// number.
func TestWhatUsersMakeForAJobIsSharedWithTheCache(t *testing.T) {
	copied := 0
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var got client.ListOptions
			if got.ApplyOptions(options); !ptr.Deref(got.UnsafeDisableDeepCopy, false) {
				t.Logf("%T is copied", list)
				copied++
			}
			return nil
		},
	})
	r := &reader[*batchv1.Job]{client: api, owns: []client.Object{&corev1.Pod{}},
		api: served[*batchv1.Job]{jobs.API[*batchv1.Job]{
			Watch: jobs.Watch{
				Targets: func(client.Object) (string, types.UID) { return "", "" },
			},
		}}}
	if _, err := r.strayTargets(t.Context(), client.ObjectKey{Namespace: "ns", Name: "j"}, ""); err != nil {
		t.Error(err)
	}
	o := &orphans{client: api, apis: []Served{Serve(abandonedAPI())}}
	if _, err := o.jobsLeft(t.Context(), orphanedWorkload(func(*kueue.Workload) {})); err != nil {
		t.Error(err)
	}
	if copied > 0 {
		t.Errorf("%d lists are copied", copied)
	}
}
