package write

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/pointers"
)

// remove deletes the object of this name if the job controls it. It reads the object from the API server: it was never
// observed, and may be another one's.
func (ex *Executor) remove(ctx context.Context, job, named client.Object) error {
	gvk, err := ex.client.GroupVersionKindFor(named)
	if err != nil {
		return err
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(gvk)
	switch err := ex.client.Get(ctx, client.ObjectKeyFromObject(named), found, client.DisableReadYourWritesConsistency); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return err
	}
	return ex.removeOwn(ctx, job, found)
}

// removeAll deletes the objects of the kind in the namespace that the job controls, except for objects with one of the
// names.
func (ex *Executor) removeAll(ctx context.Context, job client.Object, w Write) error {
	gvk, err := ex.client.GroupVersionKindFor(w.object)
	if err != nil {
		return err
	}
	var found unstructured.UnstructuredList
	found.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	for {
		// Each page is from the API server: objects without a Go type are not cached.
		if err := ex.client.List(ctx, &found, client.InNamespace(w.object.GetNamespace()), client.Limit(pageSize),
			client.Continue(found.GetContinue())); err != nil {
			if meta.IsNoMatchError(err) {
				return nil
			}
			return err
		}
		for object := range pointers.To(found.Items) {
			if slices.Contains(w.except, object.GetName()) {
				continue
			}
			if err := ex.removeOwn(ctx, job, object); err != nil {
				return err
			}
		}
		if found.GetContinue() == "" {
			return nil
		}
	}
}

// pageSize is how many objects are read at once to find the objects of a job among them. The namespace may have any
// number, and some may be large.
const pageSize = 100

// removeOwn deletes the object that was found, unless the job does not control it.
func (ex *Executor) removeOwn(ctx context.Context, job client.Object, found *unstructured.Unstructured) error {
	if !metav1.IsControlledBy(found, job) {
		return nil
	}
	err := ex.client.Delete(ctx, found, client.Preconditions{UID: ptr.To(found.GetUID())},
		client.DisableReadYourWritesConsistency)
	if apierrors.IsConflict(err) {
		return nil // another object has this name now
	}
	return client.IgnoreNotFound(err)
}
