package refusal

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unexplained is the answer of an API server to an error that it does not know.
func unexplained(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
		Reason: metav1.StatusReasonUnknown, Message: message}}
}

func TestWhatIsARefusal(t *testing.T) {
	workloads := schema.GroupResource{Group: "kueue.x-k8s.io", Resource: "workloads"}
	for name, test := range map[string]struct {
		err                         error
		refused, tooLarge, internal bool
	}{
		"a policy": {err: apierrors.NewForbidden(workloads, "a", errors.New("no")), refused: true},
		"an invalid object": {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Workload"}, "a",
			nil), refused: true},
		"a bad request": {err: apierrors.NewBadRequest("no"), refused: true},
		"too large for etcd": {err: unexplained("etcdserver: request is too large"), refused: true,
			tooLarge: true, internal: true},
		"too large for etcd, wrapped": {err: fmt.Errorf("writing: %w", unexplained("etcdserver: request is too large")),
			refused: true, tooLarge: true, internal: true},
		"too large for the client": {err: unexplained(
			"rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097300 vs. 2097152)"),
			refused: true, tooLarge: true, internal: true},
		"too large a request": {err: apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
			refused: true, tooLarge: true},
		"etcd without a leader": {err: unexplained("etcdserver: leader changed"), internal: true},
		"a webhook that does not answer": {err: apierrors.NewInternalError(errors.New("failed calling webhook")),
			internal: true},
		"overload":                      {err: apierrors.NewTooManyRequests("later", 1)},
		"unavailable":                   {err: apierrors.NewServiceUnavailable("later")},
		"a timeout of the API server":   {err: apierrors.NewServerTimeout(workloads, "update", 1)},
		"a timeout":                     {err: apierrors.NewTimeoutError("no answer", 1)},
		"a conflict":                    {err: apierrors.NewConflict(workloads, "a", errors.New("changed"))},
		"no answer that says too large": {err: errors.New("etcdserver: request is too large")},
		"no answer":                     {err: context.DeadlineExceeded},
		"nothing":                       {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Is(test.err); got != test.refused {
				t.Errorf("Is = %v, want %v", got, test.refused)
			}
			if got := IsTooLarge(test.err); got != test.tooLarge {
				t.Errorf("IsTooLarge = %v, want %v", got, test.tooLarge)
			}
			if got := IsInternal(test.err); got != test.internal {
				t.Errorf("IsInternal = %v, want %v", got, test.internal)
			}
		})
	}
}
