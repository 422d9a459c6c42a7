package write

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func TestWhyAClaimThatExistsCannotBeUsedIsSaidPlainly(t *testing.T) {
	claim := func(size, class string, mode corev1.PersistentVolumeAccessMode) *unstructured.Unstructured {
		of := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "vol-a", Namespace: "ns"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{mode},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}}}
		if class != "" {
			of.Spec.StorageClassName = ptr.To(class)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
		if err != nil {
			t.Fatal(err)
		}
		out := &unstructured.Unstructured{Object: content}
		out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		return out
	}
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "vol-a", nil)
	forbidden := apierrors.NewForbidden(claims, "vol-a", errors.New("only dynamically provisioned pvc can be resized"))
	const begin, end = "the PersistentVolumeClaim vol-a exists, and cannot be changed: ",
		". Ask for what it has, or for another volume"
	for name, test := range map[string]struct {
		wanted  *unstructured.Unstructured
		err     error
		message string
		refused bool
	}{
		"another size": {claim("2Gi", "fast", corev1.ReadWriteOnce), invalid,
			begin + "its size is 1Gi, not 2Gi" + end, true},
		"an extreme size": {claim("1e2147483647", "fast", corev1.ReadWriteOnce), invalid,
			begin + "its size is 1Gi, not 1e30" + end, true},
		"the size in words": {claim("1024Mi", "fast", corev1.ReadWriteOnce), invalid, invalid.Error(), true},
		"any class":         {claim("1Gi", "", corev1.ReadWriteOnce), invalid, invalid.Error(), true},
		"all else": {claim("2Gi", "slow", corev1.ReadWriteMany), invalid,
			begin + `its size is 1Gi, not 2Gi, its access mode is ReadWriteOnce, not ReadWriteMany, its storage class is "fast", not "slow"` + end, true},
		"no resize": {claim("2Gi", "fast", corev1.ReadWriteOnce), forbidden,
			begin + "its size is 1Gi, not 2Gi" + end + " (" + forbidden.Error() + ")", true},
		"a user's size": {claim("2Gi", "fast", corev1.ReadWriteOnce),
			apierrors.NewConflict(claims, "vol-a", errors.New("by kubectl")),
			begin + "its size is 1Gi, not 2Gi" + end +
				` (Operation cannot be fulfilled on persistentvolumeclaims "vol-a": by kubectl)`, true},
		"nobody answers": {claim("2Gi", "fast", corev1.ReadWriteOnce), apierrors.NewTimeoutError("no answer", 1),
			"Timeout: no answer", false},
		"it was changed so": {claim("2Gi", "fast", corev1.ReadWriteOnce), nil, "", false},
		"another access mode": {claim("1Gi", "fast", corev1.ReadOnlyMany), invalid,
			begin + "its access mode is ReadWriteOnce, not ReadOnlyMany" + end, true},
		"another policy of it": {claim("1Gi", "fast", corev1.ReadWriteOnce), forbidden, forbidden.Error(), true},
	} {
		t.Run(name, func(t *testing.T) {
			err := explainClaim(claim("1Gi", "fast", corev1.ReadWriteOnce), test.wanted, test.err)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.message || IsRefused(err) != test.refused {
				t.Errorf("refused: %v, want %v; it says\n%s, want\n%s", IsRefused(err), test.refused, got, test.message)
			}
		})
	}
}
