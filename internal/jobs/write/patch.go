package write

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// diff returns a merge patch against what was observed. It fails if the object has changed since.
func diff(base client.Object) client.Patch {
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

// diffDespiteStatus is a patch against what was observed that fails if the spec has changed since, by its generation,
// or the metadata that the patch itself changes. The status may have changed.
type diffDespiteStatus struct{ base client.Object }

func (diffDespiteStatus) Type() types.PatchType { return types.JSONPatchType }

func (d diffDespiteStatus) Data(desired client.Object) ([]byte, error) {
	merge, err := client.MergeFrom(d.base).Data(desired)
	if err != nil {
		return nil, err
	}
	var changes map[string]any
	if err := json.Unmarshal(merge, &changes); err != nil {
		return nil, fmt.Errorf("reading a merge patch: %w", err)
	}
	seen, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.base)
	if err != nil {
		return nil, err
	}
	steps := []patchOp{
		{Op: "test", Path: "/metadata/uid", Value: d.base.GetUID()},
		{Op: "test", Path: "/metadata/generation", Value: d.base.GetGeneration()},
	}
	return json.Marshal(append(steps, patchOps("", changes, seen)...))
}

// patchOp is an operation of a JSON patch.
type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patchOps returns the JSON patch operations that are equivalent to a merge patch of the value at path. Metadata, which
// the generation does not cover, is tested before it is changed.
func patchOps(path string, changes, seen map[string]any) (out []patchOp) {
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		at := path + "/" + pointerEscape.Replace(key)
		is, deeper := changes[key].(map[string]any)
		was, there := seen[key].(map[string]any)
		if deeper && there {
			out = append(out, patchOps(at, is, was)...)
			continue
		}
		if strings.HasPrefix(at, "/metadata/") {
			out = append(out, patchOp{Op: "test", Path: at, Value: seen[key]})
		}
		if changes[key] == nil {
			out = append(out, patchOp{Op: "remove", Path: at})
		} else {
			out = append(out, patchOp{Op: "add", Path: at, Value: changes[key]})
		}
	}
	return out
}

// pointerEscape escapes keys for the paths of a JSON patch.
var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")
