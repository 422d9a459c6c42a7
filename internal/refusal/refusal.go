// Package refusal tells which errors of a write mean that the API server will not take the object as it is. Whoever
// retries a refused write for ever waits for somebody who does not know of it. Whoever takes another error for a
// refusal gives up a write that may have taken effect.
//
// Admission and jobs import it; it imports nothing of internal/.
package refusal

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Is reports whether the API server refused the object: it is invalid, forbidden, no object of its kind, or too large.
// A refused write took no effect.
func Is(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || IsTooLarge(err)
}

// tooLarge are parts of the messages with which etcd, and the API server's client of etcd, refuse an object for its
// size. The API server passes them on as internal errors without a reason.
var tooLarge = []string{"etcdserver: request is too large", "trying to send message larger than max"}

// IsTooLarge reports whether the object is too large to be stored, or the request too large to be read.
func IsTooLarge(err error) bool {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	if !IsInternal(err) {
		return false
	}
	for _, text := range tooLarge {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// IsInternal reports whether the API server answered that it failed for a reason that it does not know better. One
// failure may be chance; an API server that answers every write to a version of an object with a failure refuses the
// write. A timeout, or a server that is overloaded or unavailable, does not count.
func IsInternal(err error) bool {
	reason := apierrors.ReasonForError(err)
	if reason != metav1.StatusReasonUnknown && reason != metav1.StatusReasonInternalError {
		return false
	}
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && answer.Status().Code == http.StatusInternalServerError
}
