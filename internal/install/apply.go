package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// hashAnnotation has a hash of what was applied last. From the live object alone one could not tell whether this
// build would apply something else: a field that this build no longer sets looks like a field of another owner.
const hashAnnotation = "muster.dev/applied-hash"

// forceAsMuster makes Muster the owner of the applied fields, even if another field manager owns them.
var forceAsMuster = metav1.PatchOptions{FieldManager: "muster", Force: ptr.To(true)}

// applyAll applies, in order, the objects that differ from the live ones.
func applyAll(ctx context.Context, in store, objects []*unstructured.Unstructured) error {
	live, err := in.list(ctx)
	if err != nil {
		return fmt.Errorf("reading the live objects: %w", err)
	}
	for _, object := range objects {
		if err := applyOne(ctx, in, live[identify(object)], object); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// applyOne applies an object, unless the live object, nil if there is none, has all its fields.
func applyOne(ctx context.Context, in store, live runtime.Object, object *unstructured.Unstructured) error {
	stamped, err := stamp(object)
	if err != nil {
		return err
	}
	if live != nil {
		if same, err := isUpToDate(live, stamped); err != nil || same {
			return err
		}
	}
	body, err := json.Marshal(stamped.Object)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	return in.apply(ctx, identify(object), body)
}

// stamp returns a copy of the object with the hash of its content.
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

// isUpToDate reports whether a live object has everything that the wanted one has, the hash included.
func isUpToDate(live runtime.Object, wanted *unstructured.Unstructured) (bool, error) {
	content, err := json.Marshal(live)
	if err != nil {
		return false, fmt.Errorf("encoding the live object: %w", err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(content, &decoded); err != nil {
		return false, fmt.Errorf("decoding the live object: %w", err)
	}
	// Typed clients return objects without apiVersion and kind.
	decoded["apiVersion"], decoded["kind"] = wanted.GetAPIVersion(), wanted.GetKind()
	wantedContent, err := json.Marshal(wanted.Object)
	if err != nil {
		return false, fmt.Errorf("encoding: %w", err)
	}
	var wantedDecoded map[string]any
	if err := json.Unmarshal(wantedContent, &wantedDecoded); err != nil {
		return false, fmt.Errorf("decoding: %w", err)
	}
	return isSubset(wantedDecoded, decoded), nil
}

// isSubset reports whether all of wanted is in live. Lists must have the same length.
func isSubset(wanted, live any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok {
			return len(wanted) == 0 && live == nil
		}
		for key, value := range wanted {
			if !isSubset(value, live[key]) {
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
			if !isSubset(wanted[i], live[i]) {
				return false
			}
		}
		return true
	default:
		return wanted == live
	}
}
