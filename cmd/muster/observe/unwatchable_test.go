package observe

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestKindThatMayBeListedButNotWatchedIsReportedOnce: the kind's informer lists it again and again, and every watch is
// refused.
func TestKindThatMayBeListedButNotWatchedIsReportedOnce(t *testing.T) {
	changes := 0
	r := unwatchableKinds{changed: func() { changes++ }}
	refusal := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "kueue.x-k8s.io", Resource: resource}, "",
			errors.New("no watch"))
	}
	for _, err := range []error{refusal("workloads"), refusal("workloads"), refusal("localqueues"),
		apierrors.NewResourceExpired("too old"), errors.New("EOF")} {
		r.handleWatchError(t.Context(), nil, err)
	}
	if reported, want := r.take(),
		[]string{"localqueues.kueue.x-k8s.io", "workloads.kueue.x-k8s.io"}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
	r.handleWatchError(t.Context(), nil, refusal("workloads"))
	if again := r.take(); len(again) > 0 || changes != 2 {
		t.Errorf("reported %q again, after %d changes", again, changes)
	}
}
