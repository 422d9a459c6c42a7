package write

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestObjectsOfOthersAreReadInPages: a job that removes all of its objects of a kind reads those of all jobs in the
// namespace.
func TestObjectsOfOthersAreReadInPages(t *testing.T) {
	job := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "job"}}
	objects := []client.Object{job}
	for i := range 5 {
		objects = append(objects,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("a", i),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job,
					corev1.SchemeGroupVersion.WithKind("ConfigMap"))}}})
	}
	const perPage = 2
	api := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		// The fake API server has no pages: this one returns the first objects, as those before are deleted.
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var got client.ListOptions
			if got.ApplyOptions(options); got.Limit == 0 {
				t.Error("all objects are read at once")
			}
			err := c.List(ctx, list, client.InNamespace(got.Namespace))
			found := list.(*unstructured.UnstructuredList)
			if found.SetContinue(""); len(found.Items) > perPage {
				found.Items = found.Items[:perPage]
				found.SetContinue("more")
			}
			return err
		},
	}).Build()
	all := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	if err := NewExecutor(api, &fakeRecorder{}).Run(t.Context(), job, Batch{Writes: []Write{RemoveAll(all)}}); err != nil {
		t.Error(err)
	}
	for _, object := range objects[1:] {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), &corev1.ServiceAccount{}); err == nil {
			t.Errorf("%s is left", object.GetName())
		}
	}
}
