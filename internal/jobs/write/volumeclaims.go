package write

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/refusal"
)

// unlikeClaimError says that a PersistentVolumeClaim, which other jobs share or an earlier one has left, exists and
// cannot be made like the one that the job asks for. What the API server says of an immutable claim is its whole spec,
// twice, and not what to do.
type unlikeClaimError struct {
	name string
	// differences are what is not as wanted, in words.
	differences []string
	err         error
}

func (u *unlikeClaimError) Error() string {
	text := fmt.Sprintf("the PersistentVolumeClaim %s exists, and cannot be changed: %s. Ask for what it has, or for another volume",
		u.name, strings.Join(u.differences, ", "))
	if apierrors.IsInvalid(u.err) {
		return text
	}
	return fmt.Sprintf("%s (%v)", text, u.err)
}

func (u *unlikeClaimError) Unwrap() error { return u.err }

// explainClaim returns the error of an apply of wanted, which was found to exist, as an unlikeClaimError if it is one.
func explainClaim(found client.Object, wanted *unstructured.Unstructured, err error) error {
	if !refusal.Is(err) && !apierrors.IsConflict(err) ||
		wanted.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim") {
		return err
	}
	var has, wants corev1.PersistentVolumeClaim
	for object, claim := range map[client.Object]*corev1.PersistentVolumeClaim{found: &has, wanted: &wants} {
		content, problem := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if problem != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, claim) != nil {
			return err
		}
	}
	if differences := unlike(&has.Spec, &wants.Spec); len(differences) > 0 {
		return &unlikeClaimError{name: wanted.GetName(), differences: differences, err: err}
	}
	return err
}

// unlike returns what of a claim is not as wanted, in words.
func unlike(has, wants *corev1.PersistentVolumeClaimSpec) (out []string) {
	differs := func(what, is, wanted string) {
		out = append(out, fmt.Sprintf("its %s is %s, not %s", what, is, wanted))
	}
	size, wantedSize := has.Resources.Requests[corev1.ResourceStorage], wants.Resources.Requests[corev1.ResourceStorage]
	if podspec.Compare(size, wantedSize) != 0 {
		differs("size", podspec.Text(size), podspec.Text(wantedSize))
	}
	if !slices.Equal(has.AccessModes, wants.AccessModes) {
		differs("access mode", join(has.AccessModes), join(wants.AccessModes))
	}
	if class := ptr.Deref(has.StorageClassName, ""); class != ptr.Deref(wants.StorageClassName, class) {
		differs("storage class", fmt.Sprintf("%q", class), fmt.Sprintf("%q", *wants.StorageClassName))
	}
	return out
}

func join(modes []corev1.PersistentVolumeAccessMode) string {
	var out []string
	for _, mode := range modes {
		out = append(out, string(mode))
	}
	return strings.Join(out, " and ")
}
