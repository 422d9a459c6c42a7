package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/refusal"
)

// predecessorError says that the name is still taken by an object of an earlier job of the same name, which is garbage
// collected with that job. The error is temporary.
type predecessorError struct{ name string }

func (p *predecessorError) Error() string {
	return fmt.Sprintf("the name %s is taken by an object of an earlier job of the same name, which is being removed", p.name)
}

// nameTakenError says that an object of another owner has the name that a child of the job must have, or one that was
// made for something else, in the words of MadeForAnnotation.
type nameTakenError struct{ kind, name, madeFor string }

func (n *nameTakenError) Error() string {
	if n.madeFor != "" {
		return fmt.Sprintf("the name %s is taken by a %s that was made for %s: give the job, or what needs it, another name, or delete that %s", n.name, n.kind, n.madeFor, n.kind)
	}
	return fmt.Sprintf("the name %s is taken by an object that belongs to another owner: delete that %s, or give the job another name", n.name, n.kind)
}

// writeError says which write failed, and why.
type writeError struct {
	write Write
	kind  string
	err   error
}

func (w *writeError) Error() string {
	return fmt.Sprintf("%s %s %s: %v", w.write.verb, w.kind, client.ObjectKeyFromObject(w.write.object), w.err)
}

func (w *writeError) Unwrap() error { return w.err }

// isHeldBack reports whether the write was not tried, because others like it were refused.
func (w *writeError) isHeldBack() bool {
	var heldBack *heldBackError
	return errors.As(w.err, &heldBack)
}

// failed returns the writes that failed according to the error of a Run.
func failed(err error) (out []Write) {
	for _, of := range failedWrites(err) {
		out = append(out, of.write)
	}
	return out
}

// failedWrites returns the errors of the single writes that were joined to the error of a Run.
func failedWrites(err error) (out []*writeError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			out = append(out, failedWrites(e)...)
		}
		return out
	}
	var of *writeError
	if errors.As(err, &of) {
		out = append(out, of)
	}
	return out
}

// isConflict reports whether all errors of a Run are conflicts with other writers' changes, which the watch delivers.
// Conflicts of verbs other than change do not count: a create fails with one if it lost a race for a ResourceQuota, for
// example.
func isConflict(err error) bool {
	return everyError(err, func(err error) bool {
		var of *writeError
		return errors.As(err, &of) && (of.write.verb == verbChange || of.write.verb == verbChangeStatus) && apierrors.IsConflict(of.err)
	})
}

// isOvertaken reports whether all errors of a Run say that another writer was first: conflicts, as with isConflict, and
// objects that are gone.
func isOvertaken(err error) bool {
	return everyError(err, func(err error) bool { return isConflict(err) || apierrors.IsNotFound(err) })
}

// everyError reports whether this is so of every error that was joined to the error of a Run.
func everyError(err error, is func(error) bool) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !everyError(e, is) })
	}
	return is(err)
}

// isNamespaceTerminating reports whether something could not be created because its namespace is being terminated. The
// job goes with its namespace; nobody can do anything about it, and no event can be created there either.
func isNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// IsRefused reports whether users have to resolve the error. Other errors are temporary.
func IsRefused(err error) bool {
	var taken *nameTakenError
	var unlike *unlikeClaimError
	return errors.As(err, &taken) || errors.As(err, &unlike) || refusal.Is(err)
}

// refusedWrites returns the writes of objects that the job needs and that were refused, the first one by name first: the
// writes of a plan are done in no order. Deletions are not among them. What the job says on its Workload is not either.
func refusedWrites(err error) []*writeError {
	refused := slices.DeleteFunc(failedWrites(err), func(e *writeError) bool {
		return !slices.Contains([]verb{verbCreate, verbApply, verbChange}, e.write.verb) || e.write.isToWorkload() ||
			!IsRefused(e.err) || isNamespaceTerminating(e.err)
	})
	slices.SortFunc(refused, func(a, b *writeError) int {
		return cmp.Or(compareBools(a.isHeldBack(), b.isHeldBack()), cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.write.object.GetName(), b.write.object.GetName()))
	})
	return refused
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// cannot says what the refused write would have done.
func (w *writeError) cannot() string {
	if w.write.verb == verbChange {
		return fmt.Sprintf("%s %s cannot be changed", w.kind, w.write.object.GetName())
	}
	return fmt.Sprintf("Its %s cannot be created", plural(w.kind))
}

// plural returns the plural of a kind, which for pods is a common word.
func plural(kind string) string {
	if kind == "Pod" {
		return "pods"
	}
	if stem, is := strings.CutSuffix(kind, "y"); is {
		return stem + "ies"
	}
	return kind + "s"
}
