package observe

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

// unwatchableKinds collects the kinds that the user may not watch, or may no longer list or watch. Informers list these
// kinds again and again with increasing backoff and do not report the failure.
type unwatchableKinds struct {
	onceEach[string, string]
	// changed is called when a kind is added.
	changed func()
}

// handleWatchError is the watch error handler of a cache.
func (u *unwatchableKinds) handleWatchError(_ context.Context, _ *toolscache.Reflector, err error) {
	var refused apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &refused) {
		return
	}
	details := refused.Status().Details
	if details == nil {
		return
	}
	kind := schema.GroupResource{Group: details.Group, Resource: details.Kind}.String()
	if u.add(kind, kind) {
		u.changed()
	}
}

// take returns the kinds added since the last call, sorted by name.
func (u *unwatchableKinds) take() []string {
	pending := u.onceEach.take()
	slices.Sort(pending)
	return pending
}
