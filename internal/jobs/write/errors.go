package write

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

// NameTakenError says that an object of another owner has the name that a child of the job must have, or one that was
// made for something else, in the words of MadeForAnnotation.
type NameTakenError struct {
	// Kind and Name name the object that the job must have. MadeFor is what the existing object was made for, "" if it
	// does not say so.
	Kind, Name, MadeFor string
}

func (n *NameTakenError) Error() string {
	if n.MadeFor != "" {
		return fmt.Sprintf("the name %s is taken by a %s that was made for %s: give the job, or what needs it, another name, or delete that %s",
			n.Name, n.Kind, n.MadeFor, n.Kind)
	}
	return fmt.Sprintf("the name %s is taken by an object that belongs to another owner: delete that %s, or give the job another name", n.Name, n.Kind)
}

// Failure is the error of a write: it says which write failed, and why.
type Failure struct {
	write Write
	kind  string
	err   error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s %s %s: %v", f.write.verb, f.kind, client.ObjectKeyFromObject(f.write.object), f.err)
}

func (f *Failure) Unwrap() error { return f.err }

// isHeldBack reports whether the write was not tried, because others like it were refused.
func (f *Failure) isHeldBack() bool {
	var heldBack *heldBackError
	return errors.As(f.err, &heldBack)
}

// failed returns the writes that failed according to the error of a Run.
func failed(err error) (out []Write) {
	for _, of := range failedWrites(err) {
		out = append(out, of.write)
	}
	return out
}

// failedWrites returns the errors of the single writes that were joined to the error of a Run.
func failedWrites(err error) (out []*Failure) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			out = append(out, failedWrites(e)...)
		}
		return out
	}
	var of *Failure
	if errors.As(err, &of) {
		out = append(out, of)
	}
	return out
}

// IsConflict reports whether all errors of a Run are conflicts with other writers' changes, which the watch delivers.
// Conflicts of verbs other than change do not count: a create fails with one if it lost a race for a ResourceQuota, for
// example.
func IsConflict(err error) bool {
	return EveryError(err, func(err error) bool {
		var of *Failure
		return errors.As(err, &of) && (of.write.verb == VerbChange || of.write.verb == VerbChangeStatus) &&
			apierrors.IsConflict(of.err)
	})
}

// IsOvertaken reports whether all errors of a Run say that another writer was first: conflicts, as with IsConflict, and
// objects that are gone.
func IsOvertaken(err error) bool {
	return EveryError(err, func(err error) bool { return IsConflict(err) || apierrors.IsNotFound(err) })
}

// EveryError reports whether this is so of every error that was joined to the error of a Run.
func EveryError(err error, is func(error) bool) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !EveryError(e, is) })
	}
	return is(err)
}

// IsNamespaceTerminating reports whether something could not be created because its namespace is being terminated. The
// job goes with its namespace; nobody can do anything about it, and no event can be created there either.
func IsNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// IsRefused reports whether users have to resolve the error. Other errors are temporary.
func IsRefused(err error) bool {
	var taken *NameTakenError
	var unlike *unlikeClaimError
	return errors.As(err, &taken) || errors.As(err, &unlike) || refusal.Is(err)
}

// RefusedOf returns the writes of objects that the job needs and that were refused, the first one by name first: the
// writes of a plan are done in no order. Deletions are not among them. What the job says on its Workload is not either.
func RefusedOf(err error) []*Failure {
	refused := slices.DeleteFunc(failedWrites(err), func(e *Failure) bool {
		return !slices.Contains([]Verb{VerbCreate, VerbApply, VerbChange}, e.write.verb) || e.write.IsToWorkload() ||
			!IsRefused(e.err) || IsNamespaceTerminating(e.err)
	})
	slices.SortFunc(refused, func(a, b *Failure) int {
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

// Cannot says what the refused write would have done.
func (f *Failure) Cannot() string {
	if f.write.verb == VerbChange {
		return fmt.Sprintf("%s %s cannot be changed", f.kind, f.write.object.GetName())
	}
	return fmt.Sprintf("Its %s cannot be created", plural(f.kind))
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

// MustGoOn reports whether a write that the job can go on without was refused, by the error of a Run.
func MustGoOn(err error) bool {
	return slices.ContainsFunc(failedWrites(err), func(f *Failure) bool { return f.write.dispensable && IsRefused(f.err) })
}
