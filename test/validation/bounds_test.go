package validation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// boundsFile lists every bound that the definitions of queues and Workloads set by their schema, as the public API has
// them: kind, field, keyword and value.
const boundsFile = "testdata/queueing-bounds.txt"

// bound is one keyword of the schema of one field.
type bound struct {
	path, keyword string
	value         any
	of            *apiextensionsv1.JSONSchemaProps
}

// spellings are, for each pattern, what fits it and what, though near to it, does not.
var spellings = map[string]struct{ fits, fails []string }{
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`: {[]string{"a", "a-1"},
		[]string{"", "A", "a-", "-a", "a.b"}},
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`: {[]string{"a", "a.b-c"},
		[]string{"", "A", "a..b", ".a", "a_b"}},
	`^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$`: {[]string{"Config", "c-1"}, []string{"", "Con.fig", "1c", "c-"}},
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`: {
		[]string{"rack", "example.com/Rack_1"}, []string{"", "a/b/c", "Example.com/rack", "rack-"}},
	`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`: {[]string{"Ready", "A:b,c_"}, []string{"", "1a", "a b"}},
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`: {
		[]string{"Ready", "example.com/Ready"}, []string{"", "a b", "example.com/"}},
	`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,3}))?$`: {
		[]string{"1", "500m", "1.5Gi", "1e100"}, []string{"", "1 Gi", "one", "1e1000"}},
}

// Each bound takes what is just within it and refuses, by the code that the API server refuses by, what is just beyond.
func TestEveryBoundOfTheQueueingAPIsHolds(t *testing.T) {
	var listed []string
	for _, definition := range readAll[apiextensionsv1.CustomResourceDefinition](t, "muster/apis/kueue.x-k8s.io_*.yaml") {
		kind := definition.Spec.Names.Kind
		for _, b := range boundsOf(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, "") {
			line := strings.TrimSpace(fmt.Sprintf("%s%s %s %v", kind, b.path, b.keyword, b.value))
			listed = append(listed, line)
			within, beyond := b.around()
			if len(within) == 0 || len(beyond) == 0 {
				t.Errorf("%s: nothing to try it with", line)
			}
			for _, value := range within {
				if err := b.refusal(t, value); err != "" {
					t.Errorf("%s: %.80v is refused: %s", line, value, err)
				}
			}
			for _, value := range beyond {
				if b.refusal(t, value) == "" {
					t.Errorf("%s: %.80v is accepted", line, value)
				}
			}
		}
	}
	slices.Sort(listed)
	file, err := os.ReadFile(boundsFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(file)), "\n"), listed); diff != "" {
		t.Errorf("%s and the definitions differ (-file +definitions):\n%s", boundsFile, diff)
	}
}

// boundsOf are those of a field and of all below it. Pod templates are Kubernetes' own, and the range of an int32 is
// its format's.
func boundsOf(node *apiextensionsv1.JSONSchemaProps, path string) (all []bound) {
	if strings.HasSuffix(path, ".template") || strings.HasSuffix(path, ".metadata") {
		return nil
	}
	add := func(keyword string, value any) { all = append(all, bound{path, keyword, value, node}) }
	if node.Minimum != nil && *node.Minimum != math.MinInt32 {
		add("minimum", *node.Minimum)
	}
	for keyword, most := range map[string]*int64{"minLength": node.MinLength, "maxLength": node.MaxLength,
		"minItems": node.MinItems, "maxItems": node.MaxItems} {
		if most != nil {
			add(keyword, *most)
		}
	}
	if node.Pattern != "" {
		add("pattern", node.Pattern)
	}
	for _, one := range node.Enum {
		add("enum", string(one.Raw))
	}
	for _, name := range node.Required {
		add("required", name)
	}
	if node.XListType != nil && *node.XListType != "atomic" {
		add("unique", strings.Join(node.XListMapKeys, ","))
	}
	for name, child := range node.Properties {
		all = append(all, boundsOf(&child, path+"."+name)...)
	}
	if node.Items != nil {
		all = append(all, boundsOf(node.Items.Schema, path+"[]")...)
	}
	if node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil {
		all = append(all, boundsOf(node.AdditionalProperties.Schema, path+"{}")...)
	}
	return all
}

// around gives values just within the bound and just beyond it.
func (b bound) around() (within, beyond []any) {
	size, _ := b.value.(int64)
	switch b.keyword {
	case "minimum":
		least := int64(b.value.(float64))
		return []any{least}, []any{least - 1}
	case "minLength":
		return []any{strings.Repeat("a", int(size))}, []any{strings.Repeat("a", int(size)-1)}
	case "maxLength":
		filler := "a"
		if b.of.XIntOrString {
			filler = "1" // a quantity
		}
		return []any{strings.Repeat(filler, int(size))}, []any{strings.Repeat(filler, int(size)+1)}
	case "minItems":
		return []any{b.items(int(size))}, []any{b.items(int(size) - 1)}
	case "maxItems":
		return []any{b.items(int(size))}, []any{b.items(int(size) + 1)}
	case "pattern":
		for _, spelt := range spellings[b.of.Pattern].fits {
			within = append(within, spelt)
		}
		for _, spelt := range spellings[b.of.Pattern].fails {
			beyond = append(beyond, spelt)
		}
		return within, beyond
	case "enum":
		return []any{fromYAML(b.value.(string))}, []any{"Neither", strings.ToLower(fromYAML(b.value.(string)).(string)) + " "}
	case "required":
		whole := sample(b.of, 0).(map[string]any)
		lacking := maps.Clone(whole)
		delete(lacking, b.value.(string))
		return []any{whole}, []any{lacking}
	default: // unique
		return []any{b.items(min(2, b.most()))}, []any{[]any{b.item(0), b.item(0)}}
	}
}

// most is how many items the list may have.
func (b bound) most() int {
	if b.of.MaxItems == nil {
		return 2
	}
	return int(*b.of.MaxItems)
}

// items are so many of the list's.
func (b bound) items(count int) []any {
	out := make([]any, count)
	for i := range out {
		out[i] = b.item(i)
	}
	return out
}

// item is one of the list's, with the keys by which it is told from others, though they have defaults.
func (b bound) item(number int) any {
	out := sample(b.of.Items.Schema, number)
	for _, key := range b.of.XListMapKeys {
		child := b.of.Items.Schema.Properties[key]
		out.(map[string]any)[key] = sample(&child, number)
	}
	return out
}

// refusal is what the API server's code has against the value, "" for nothing.
func (b bound) refusal(t *testing.T, value any) string {
	t.Helper()
	if b.keyword == "unique" {
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(b.of, &internal,
			nil); err != nil {
			t.Fatal(err)
		}
		list, err := schema.NewStructural(&internal)
		if err != nil {
			t.Fatal(err)
		}
		whole := &schema.Structural{Properties: map[string]schema.Structural{"list": *list}}
		return text(listtype.ValidateListSetsAndMaps(nil, whole, map[string]any{"list": value}).ToAggregate())
	}
	encoded, err := json.Marshal(b.of)
	if err != nil {
		t.Fatal(err)
	}
	var node spec.Schema
	if err := json.Unmarshal(encoded, &node); err != nil {
		t.Fatal(err)
	}
	return text(errors.Join(validate.NewSchemaValidator(&node, nil, "", strfmt.Default).Validate(value).Errors...))
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// sample is the smallest value that the schema takes, another for each number.
func sample(node *apiextensionsv1.JSONSchemaProps, number int) any {
	switch {
	case len(node.Enum) > 0:
		return fromYAML(string(node.Enum[0].Raw))
	case node.Format == "date-time":
		return "2026-01-01T00:00:00Z"
	case node.XIntOrString:
		return int64(number)
	}
	switch node.Type {
	case "object":
		out := map[string]any{}
		for _, name := range node.Required {
			child := node.Properties[name]
			out[name] = sample(&child, number)
		}
		return out
	case "array":
		out := []any{}
		if node.MinItems != nil {
			for i := range *node.MinItems {
				out = append(out, sample(node.Items.Schema, int(i)))
			}
		}
		return out
	case "boolean":
		return true
	case "string":
		return fmt.Sprintf("a%d", number)
	default:
		return int64(number) + 1
	}
}
