package observe

import (
	"context"
	"errors"
	"net/url"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/cmd/muster/view"
)

// read lists a kind. A single object that its Go type cannot decode makes the list of its kind fail; then the objects
// are decoded one by one, and the objects that fail are returned. For kinds that decisions depend on, read fails
// instead.
func (c *Cluster) read(ctx context.Context, kind kindRead, options ...client.ListOption) ([]view.Unreadable, error) {
	err := c.client.List(ctx, kind.list, options...)
	if err == nil || kind.decides || isServedError(err) {
		return nil, err
	}
	unreadable, again := c.readEach(ctx, kind, options...)
	if again != nil {
		return nil, err
	}
	return unreadable, nil
}

// undecodableJobs collects the jobs that a watch could not decode. Each is reported once per generation: its status may
// be written many times.
type undecodableJobs = onceEach[generation, view.Unreadable]

// onceEach collects values that are to be reported, once for each key.
type onceEach[K comparable, V any] struct {
	mu       sync.Mutex
	reported sets.Set[K]
	pending  []V
}

// add adds the value, and reports whether the key is new.
func (o *onceEach[K, V]) add(key K, value V) (isNew bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reported.Has(key) {
		return false
	}
	if o.reported == nil {
		o.reported = sets.New[K]()
	}
	o.reported.Insert(key)
	o.pending = append(o.pending, value)
	return true
}

// take returns the values added since the last call.
func (o *onceEach[K, V]) take() []V {
	o.mu.Lock()
	defer o.mu.Unlock()
	pending := o.pending
	o.pending = nil
	return pending
}

// generation identifies one version of the spec of an object.
type generation struct {
	uid    types.UID
	number int64
}

// isServedError reports whether a list failed for a reason other than decoding its items.
func isServedError(err error) bool {
	return apierrors.ReasonForError(err) != "" || meta.IsNoMatchError(err) || errors.As(err, new(*url.Error))
}

// readEach fills the kind's list with the objects that can be decoded, and returns the others.
func (c *Cluster) readEach(ctx context.Context, kind kindRead,
	options ...client.ListOption) (unreadable []view.Unreadable, err error) {
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
			unreadable = append(unreadable, view.Unreadable{Resource: mapping.Resource.GroupResource(),
				Namespace: item.GetNamespace(), Name: item.GetName(), Why: why})
			continue
		}
		readable = append(readable, object)
	}
	return unreadable, meta.SetList(kind.list, readable)
}
