package validation

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/musterhq/muster/internal/testcluster"
)

// strange are values that a schema may take for a field whose type in Go cannot.
var strange = []any{
	"5 minutes", "5m", "-5m", "1h1h", "", "9999999999h", "999999h9999999m999999999s999999999ms", "0",
	"1.5h", "90s", "300ms", "2026-01-01t00:00:00z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+01:00",
	"2026-01-01T00:00:00+99:99", "2026-01-01T24:00:00Z", "1e999", "1e-999", "+.5", "1e1000", "a", "?", "80",
	// how an API server sees integers beyond an int64, or with an exponent
	float64(1 << 32), float64(1 << 62), float64(1 << 63), 1e19, -1e19,
	int64(0), int64(math.MaxInt32), int64(math.MaxInt32 + 1), int64(math.MinInt32), int64(math.MinInt32 - 1),
	int64(math.MaxInt64), int64(math.MinInt64), true, nil, []any{}, []any{"a"}, map[string]any{}, map[string]any{"a": "b"},
}

// TestGoTypesDecodeWhatTheSchemaAccepts: a single object that the types in Go cannot read keeps every program with such
// types from reading any other of its kind, so the API server refuses what people might write in a spec that is such.
// Fields are tried one by one, without the formats of integers, which API servers before Kubernetes 1.36 do not
// enforce.
func TestGoTypesDecodeWhatTheSchemaAccepts(t *testing.T) {
	scheme, tried := testcluster.Scheme(), 0
	for _, definition := range readAll[apiextensionsv1.CustomResourceDefinition](t, "muster/apis/*.yaml") {
		for _, version := range definition.Spec.Versions {
			kind := schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name,
				Kind: definition.Spec.Names.Kind}
			for name, field := range version.Schema.OpenAPIV3Schema.Properties {
				if name == "metadata" || name == "status" {
					continue
				}
				eachLeaf(&field, []string{name}, func(path []string, leaf *apiextensionsv1.JSONSchemaProps) {
					if leaf.Format == "date-time" {
						// the one of taints of flavors, which administrators write: of such a field the API server takes a list too
						return
					}
					if leaf.Type == "integer" {
						leaf.Format = ""
					}
					validator := bound{of: leaf}
					for _, value := range strange {
						if value == nil && !leaf.Nullable || validator.refusal(t, value) != "" {
							continue // without nullable a null is dropped before anybody reads it
						}
						tried++
						object, err := scheme.New(kind)
						if err != nil {
							t.Fatal(err)
						}
						text, err := json.Marshal(at(path, value))
						if err != nil {
							t.Fatal(err)
						}
						if err := json.Unmarshal(text, object); err != nil {
							t.Errorf("%s: %s takes %v (%v), and nobody can read it: %v", kind.Kind, strings.Join(path, "."), value,
								reflect.TypeOf(value), err)
						}
					}
				})
			}
		}
	}
	if tried < 10000 {
		t.Errorf("only %d values were tried", tried)
	}
}

// eachLeaf calls visit for each field below the node that has no others below it, with the names that lead there: [] is
// an item of a list, {} the value of a key.
func eachLeaf(node *apiextensionsv1.JSONSchemaProps, path []string,
	visit func([]string, *apiextensionsv1.JSONSchemaProps)) {
	path = path[:len(path):len(path)]
	switch {
	case node.Items != nil && node.Items.Schema != nil:
		eachLeaf(node.Items.Schema, append(path, "[]"), visit)
	case node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil:
		eachLeaf(node.AdditionalProperties.Schema, append(path, "{}"), visit)
	case len(node.Properties) > 0:
		for name, child := range node.Properties {
			eachLeaf(&child, append(path, name), visit)
		}
	default:
		visit(path, node)
	}
}

// at is an object with the value at the end of the path, and nothing else.
func at(path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	rest := at(path[1:], value)
	switch path[0] {
	case "[]":
		return []any{rest}
	case "{}":
		return map[string]any{"a": rest}
	}
	return map[string]any{path[0]: rest}
}
