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

// refusals are the kinds that the user may list and not watch, or whose right to either he has lost: informers list them again and again,
// ever more seldom, and say nothing of it.
type refusals struct {
	mu     sync.Mutex
	told   map[string]bool
	untold []string
	// changed is told that there are more.
	changed func()
}

// heard is for the errors of a cache's watches.
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

// take gives those that came since it was last called, by name.
func (r *refusals) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	untold := r.untold
	r.untold = nil
	slices.Sort(untold)
	return untold
}
