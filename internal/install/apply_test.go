package install

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestIsUpToDateComparesWantedFieldsOnly(t *testing.T) {
	const wanted = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things, shortNames: [th]}
  versions: []
`
	tests := []struct {
		what string
		live string
		want bool
	}{
		{"the same", wanted, true},
		{"fields that the API server adds",
			wanted + "  conversion: {strategy: None}\nstatus: {storedVersions: [v1]}\n", true},
		{"another value", `{metadata: {name: things.example.com}, spec: {group: other, names: {kind: Thing, plural: things, shortNames: [th]}}}`, false},
		{"a missing field", `{metadata: {name: things.example.com}, spec: {group: example.com, names: {kind: Thing, plural: things}}}`, false},
		{"an additional item", `{metadata: {name: things.example.com}, spec: {group: example.com, names: {kind: Thing, plural: things, shortNames: [th, ti]}}}`, false},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(wanted), &object.Object); err != nil {
				t.Fatal(err)
			}
			stamped, err := stamp(object)
			if err != nil {
				t.Fatal(err)
			}
			live := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal([]byte(test.live), live); err != nil {
				t.Fatal(err)
			}
			live.Annotations = stamped.GetAnnotations()
			if got, err := isUpToDate(live, stamped); err != nil || got != test.want {
				t.Errorf("got %t and %v, want %t", got, err, test.want)
			}
			live.Annotations = map[string]string{hashAnnotation: "of another content"}
			if got, err := isUpToDate(live, stamped); err != nil || got {
				t.Errorf("with another hash: got %t and %v, want false", got, err)
			}
		})
	}
}
