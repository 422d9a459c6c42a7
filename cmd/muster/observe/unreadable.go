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

// passedOver are the jobs that a watch could not read, each of which is told once, and once more when it has been changed and cannot be
// read yet: its status may be written many times.
type passedOver struct {
	mu     sync.Mutex
	told   map[generation]bool
	untold []view.Unreadable
}

// generation is what was asked of an object.
type generation struct {
	uid    types.UID
	number int64
}

func (p *passedOver) add(of generation, job view.Unreadable) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told[of] {
		return
	}
	if p.told == nil {
		p.told = map[generation]bool{}
	}
	p.told[of] = true
	p.untold = append(p.untold, job)
}

// take gives those that came since it was last called.
func (p *passedOver) take() []view.Unreadable {
	p.mu.Lock()
	defer p.mu.Unlock()
	untold := p.untold
	p.untold = nil
	return untold
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
