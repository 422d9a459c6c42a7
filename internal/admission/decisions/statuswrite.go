package decisions

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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/internal/workload"
)

// WriteStatus changes the status of the Workload from seen to desired and returns the resulting version. It fails with
// a conflict if the Workload has changed since. Every admission is one of these writes, so the write is kept small: the
// patch has only what differs, and the response is metadata alone, since the watch delivers the object anyway.
func WriteStatus(ctx context.Context, c client.Client, seen, desired *kueue.Workload,
	options ...client.SubResourcePatchOption) (version int64, err error) {
	patch, err := statusPatch(seen, desired)
	if err != nil {
		return 0, fmt.Errorf("computing the patch of a Workload's status: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name}}
	answer.SetGroupVersionKind(kueue.GroupVersion.WithKind("Workload"))
	options = append(options, client.DisableReadYourWritesConsistency)
	if err := c.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), options...); err != nil {
		return 0, err
	}
	return translate.VersionOf(answer), nil
}

// WriteStatusThatFits changes the status of the Workload from seen to desired. If the API server refuses the status as
// too large, and the status takes the Workload's quota, a short status that does the same is written instead. It
// returns the Workload as it was written, and the resulting version.
func WriteStatusThatFits(ctx context.Context, c client.Client,
	seen, desired *kueue.Workload) (written *kueue.Workload, version int64, err error) {
	version, err = WriteStatus(ctx, c, seen, desired)
	if !refusal.IsTooLarge(err) {
		return desired, version, err
	}
	brief := workload.InBrief(seen, desired)
	if brief == nil {
		return desired, version, err
	}
	ctrl.LoggerFrom(ctx).Error(err, "a Workload is too large for the status that takes its quota: it loses all of it at once, without a reason in its status",
		"workload", translate.KeyOf(seen).String())
	version, err = WriteStatus(ctx, c, seen, brief)
	return brief, version, err
}

// statusPatch returns a merge patch from the status that was seen to the desired one, which applies only to the version
// that was seen.
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

// fieldPatch returns the value in a merge patch for a field that differs. A merge patch merges objects, so theirs is
// again a merge patch; any other value replaces the old one.
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

// isEmpty reports whether the API omits the field.
func isEmpty(field reflect.Value) bool {
	return field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0
}
