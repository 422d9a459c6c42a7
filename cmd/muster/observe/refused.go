package observe

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

// refusals collects the kinds that the user may not watch, or may no longer list or watch. Informers list such kinds
// again and again with increasing backoff and do not report it.
type refusals struct {
	mu     sync.Mutex
	told   map[string]bool
	untold []string
	// changed is called when a kind is added.
	changed func()
}

// heard is the watch error handler of a cache.
func (r *refusals) heard(_ context.Context, _ *toolscache.Reflector, err error) {
	var refused apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &refused) {
		return
	}
	details := refused.Status().Details
	if details == nil {
		return
	}
	kind := schema.GroupResource{Group: details.Group, Resource: details.Kind}.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told[kind] {
		return
	}
	if r.told == nil {
		r.told = map[string]bool{}
	}
	r.told[kind] = true
	r.untold = append(r.untold, kind)
	r.changed()
}

// take returns the kinds added since the last call, sorted by name.
func (r *refusals) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	untold := r.untold
	r.untold = nil
	slices.Sort(untold)
	return untold
}
