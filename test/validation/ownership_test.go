package validation

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAWorkloadsTemplatesAndAdmissionHaveOneOwnerEach: who owns each of their fields was more than half of a Workload,
// and tracking it a fifth of what the API server took to create and admit one.
func TestAWorkloadsTemplatesAndAdmissionHaveOneOwnerEach(t *testing.T) {
	s := newServer(t)
	stored := s.store(t, s.resource(t, "Workload", ""), s.plain(t, "Workload"), admitted)
	var owned []map[string]any
	for _, entry := range stored.GetManagedFields() {
		fields := map[string]any{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			t.Fatal(err)
		}
		owned = append(owned, fields)
	}
	if len(owned) != 2 {
		t.Fatalf("%d entries of who owns what; want one of the spec and one of the status", len(owned))
	}
	whole := map[string]any{}
	for _, of := range []struct {
		what   string
		fields map[string]any
		path   []string
	}{
		{"a pod set's template", owned[0], []string{"f:spec", "f:podSets", `k:{"name":"main"}`, "f:template"}},
		{"the admission", owned[1], []string{"f:status", "f:admission"}},
	} {
		got, found, err := unstructured.NestedFieldNoCopy(of.fields, of.path...)
		if err != nil || !found {
			t.Errorf("%s: nobody owns it (%v): %v", of.what, err, of.fields)
			continue
		}
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Errorf("%s: its fields have owners of their own (-want +got):\n%s", of.what, diff)
		}
	}
}
