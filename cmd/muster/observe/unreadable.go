package observe

import (
	"context"
	"errors"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/cmd/muster/view"
)

// read lists a kind. A single job that its type cannot hold has none of its kind be listed: then they are read one by one, and it is
// left out and told of. What decisions rest on is read whole or not at all.
func (c *Cluster) read(ctx context.Context, kind kindRead, options ...client.ListOption) ([]view.Unreadable, error) {
	err := c.client.List(ctx, kind.list, options...)
	if err == nil || kind.decides || isAnswered(err) {
		return nil, err
	}
	unreadable, again := c.readEach(ctx, kind, options...)
	if again != nil {
		return nil, err
	}
	return unreadable, nil
}

// isAnswered recognises the errors of a list that do not come from reading what is in it.
func isAnswered(err error) bool {
	return apierrors.ReasonForError(err) != "" || meta.IsNoMatchError(err) || errors.As(err, new(*url.Error))
}

// readEach fills the kind's list with the objects that can be read, and returns the others.
func (c *Cluster) readEach(ctx context.Context, kind kindRead, options ...client.ListOption) (unreadable []view.Unreadable, err error) {
	gvk, err := c.client.GroupVersionKindFor(kind.watched)
	if err != nil {
		return nil, err
	}
	mapping, err := c.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	var raw unstructured.UnstructuredList
	raw.SetGroupVersionKind(gvk)
	if err := c.client.List(ctx, &raw, options...); err != nil {
		return nil, err
	}
	var readable []runtime.Object
	for _, item := range raw.Items {
		object := kind.watched.DeepCopyObject()
		if why := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, object); why != nil {
			unreadable = append(unreadable, view.Unreadable{Resource: mapping.Resource.GroupResource(), Namespace: item.GetNamespace(), Name: item.GetName(), Why: why})
			continue
		}
		readable = append(readable, object)
	}
	return unreadable, meta.SetList(kind.list, readable)
}
