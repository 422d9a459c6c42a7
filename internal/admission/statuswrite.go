package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// writeStatus gives the Workload that was seen the status that is desired, and returns the version that it has with it.
// It fails with a conflict if the Workload was changed since. Every admission is such a write, so none of it is more than
// it must be: the patch is made of what differs, and of the answer, which the watch brings as well, only metadata is asked for.
func writeStatus(ctx context.Context, c client.Client, seen, desired *kueue.Workload) (version int64, err error) {
	patch, err := statusPatch(seen, desired)
	if err != nil {
		return 0, fmt.Errorf("making a patch of a Workload's status: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name}}
	answer.SetGroupVersionKind(kueue.GroupVersion.WithKind("Workload"))
	if err := c.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), client.DisableReadYourWritesConsistency); err != nil {
		return 0, err
	}
	return versionOf(answer), nil
}

// statusPatch is a merge patch that takes the Workload from the status that was seen to the desired one, and applies to no
// other version of it.
func statusPatch(seen, desired *kueue.Workload) ([]byte, error) {
	was, is := reflect.ValueOf(seen.Status), reflect.ValueOf(desired.Status)
	status := map[string]json.RawMessage{}
	for i := range is.NumField() {
		if equality.Semantic.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			continue
		}
		name, _, _ := strings.Cut(is.Type().Field(i).Tag.Get("json"), ",")
		change, err := fieldPatch(was.Field(i), is.Field(i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		status[name] = change
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": seen.ResourceVersion},
		"status":   status,
	})
}

// fieldPatch is what a merge patch says of a field that differs. Objects are merged with what is there, and so their patch
// is a merge patch itself; all else takes the place of what was.
func fieldPatch(was, is reflect.Value) (json.RawMessage, error) {
	if isEmpty(is) {
		return json.RawMessage("null"), nil
	}
	after, err := json.Marshal(is.Interface())
	if err != nil || isEmpty(was) || is.Kind() != reflect.Pointer || is.Type().Elem().Kind() != reflect.Struct {
		return after, err
	}
	before, err := json.Marshal(was.Interface())
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(before, after)
}

// isEmpty tells whether the API leaves the field out.
func isEmpty(field reflect.Value) bool {
	return field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0
}
