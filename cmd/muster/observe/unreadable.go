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
type undecodableJobs struct {
	mu       sync.Mutex
	reported map[generation]bool
	pending  []view.Unreadable
}

// generation identifies one version of the spec of an object.
type generation struct {
	uid    types.UID
	number int64
}

func (u *undecodableJobs) add(of generation, job view.Unreadable) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reported[of] {
		return
	}
	if u.reported == nil {
		u.reported = map[generation]bool{}
	}
	u.reported[of] = true
	u.pending = append(u.pending, job)
}

// take returns the jobs added since the last call.
func (u *undecodableJobs) take() []view.Unreadable {
	u.mu.Lock()
	defer u.mu.Unlock()
	pending := u.pending
	u.pending = nil
	return pending
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
