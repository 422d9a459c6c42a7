package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// hashAnnotation holds a hash of what was applied last. It tells whether this build would apply something else, which a
// look at the object alone would not: a field that this build no longer sets would pass for one that is none of ours.
const hashAnnotation = "muster.dev/applied-hash"

// store reads and applies the objects of some kinds.
type store interface {
	get(ctx context.Context, kind, name string) (runtime.Object, error)
	apply(ctx context.Context, kind, name string, body []byte, options metav1.PatchOptions) error
}

// applyAll applies, in order, those objects that are not yet as they should be.
func applyAll(ctx context.Context, in store, objects []*unstructured.Unstructured, manager string) error {
	for _, object := range objects {
		if err := applyOne(ctx, in, object, manager); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func applyOne(ctx context.Context, in store, object *unstructured.Unstructured, manager string) error {
	stamped, err := stamp(object)
	if err != nil {
		return err
	}
	live, err := in.get(ctx, object.GetKind(), object.GetName())
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading what is there: %w", err)
	default:
		same, err := holds(live, stamped)
		if err != nil {
			return err
		}
		if same {
			return nil
		}
	}
	body, err := json.Marshal(stamped.Object)
	if err != nil {
		return err
	}
	force := true
	return in.apply(ctx, object.GetKind(), object.GetName(), body, metav1.PatchOptions{FieldManager: manager, Force: &force})
}

// stamp gives a copy of the object that carries the hash of its content.
func stamp(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	content, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	sum := sha256.Sum256(content)
	stamped := object.DeepCopy()
	annotations := stamped.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[hashAnnotation] = hex.EncodeToString(sum[:])
	stamped.SetAnnotations(annotations)
	return stamped, nil
}

// holds says whether a live object has all that a wanted one has, the hash included.
func holds(live runtime.Object, wanted *unstructured.Unstructured) (bool, error) {
	content, err := json.Marshal(live)
	if err != nil {
		return false, fmt.Errorf("encoding what is there: %w", err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(content, &decoded); err != nil {
		return false, fmt.Errorf("decoding what is there: %w", err)
	}
	// Typed clients give objects without their kind.
	decoded["apiVersion"], decoded["kind"] = wanted.GetAPIVersion(), wanted.GetKind()
	wantedContent, err := json.Marshal(wanted.Object)
	if err != nil {
		return false, fmt.Errorf("encoding: %w", err)
	}
	var wantedDecoded map[string]any
	if err := json.Unmarshal(wantedContent, &wantedDecoded); err != nil {
		return false, fmt.Errorf("decoding: %w", err)
	}
	return within(wantedDecoded, decoded), nil
}

// within says whether all of wanted is in live. Lists must be of the same length.
func within(wanted, live any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok {
			return len(wanted) == 0 && live == nil
		}
		for key, value := range wanted {
			if !within(value, live[key]) {
				return false
			}
		}
		return true
	case []any:
		live, ok := live.([]any)
		if !ok || len(live) != len(wanted) {
			return len(wanted) == 0 && len(live) == 0
		}
		for i := range wanted {
			if !within(wanted[i], live[i]) {
				return false
			}
		}
		return true
	default:
		return wanted == live
	}
}

type definitionStore struct{ client apiextensions.Interface }

func definitionsOf(client apiextensions.Interface) store { return definitionStore{client} }

func (s definitionStore) get(ctx context.Context, _, name string) (runtime.Object, error) {
	return s.client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
}

func (s definitionStore) apply(ctx context.Context, _, name string, body []byte, options metav1.PatchOptions) error {
	_, err := s.client.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, name, types.ApplyPatchType, body, options)
	return err
}

type policyStore struct{ client kubernetes.Interface }

func policiesOf(client kubernetes.Interface) store { return policyStore{client} }

func (s policyStore) get(ctx context.Context, kind, name string) (runtime.Object, error) {
	switch kind {
	case "ValidatingAdmissionPolicy":
		return s.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	case "ValidatingAdmissionPolicyBinding":
		return s.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	default:
		return nil, fmt.Errorf("kind %q is not an admission policy", kind)
	}
}

func (s policyStore) apply(ctx context.Context, kind, name string, body []byte, options metav1.PatchOptions) error {
	var err error
	switch kind {
	case "ValidatingAdmissionPolicy":
		_, err = s.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Patch(ctx, name, types.ApplyPatchType, body, options)
	case "ValidatingAdmissionPolicyBinding":
		_, err = s.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Patch(ctx, name, types.ApplyPatchType, body, options)
	default:
		err = fmt.Errorf("kind %q is not an admission policy", kind)
	}
	return err
}

var (
	_ runtime.Object = &apiextensionsv1.CustomResourceDefinition{}
	_ runtime.Object = &admissionv1.ValidatingAdmissionPolicy{}
)
