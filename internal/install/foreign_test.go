package install

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/musterhq/muster/api/muster"
)

// holding is a store of one definition that must not be written.
type holding struct {
	store
	definition *apiextensionsv1.CustomResourceDefinition
}

func (h holding) list(context.Context) (map[identity]runtime.Object, error) {
	return map[identity]runtime.Object{{"CustomResourceDefinition", h.definition.Name}: h.definition}, nil
}

func TestForeignDefinitionsAreRefusedWithTheirOwner(t *testing.T) {
	const name = "workloads.kueue.x-k8s.io"
	tests := []struct {
		what string
		meta metav1.ObjectMeta
		want string
	}{
		{"Muster's definition", metav1.ObjectMeta{Name: name, Labels: map[string]string{muster.ServedLabel: "true"}}, ""},
		{"a definition of an older build",
			metav1.ObjectMeta{Name: name, Annotations: map[string]string{hashAnnotation: "a"}}, ""},
		{"another definition", metav1.ObjectMeta{Name: "others.example.com"}, ""},
		{"a definition of a Helm release", metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{"meta.helm.sh/release-name": "kueue", "meta.helm.sh/release-namespace": "queues"}},
			"the Helm release kueue in namespace queues"},
		{"a definition with an application label",
			metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "kueue"}}, "belongs to kueue"},
		{"a definition that was applied", metav1.ObjectMeta{Name: name,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}, "whoever applied it as kubectl"},
		{"a definition without an owner", metav1.ObjectMeta{Name: name}, "belongs to somebody else"},
	}
	wanted := &unstructured.Unstructured{}
	wanted.SetKind("CustomResourceDefinition")
	wanted.SetName(name)
	for _, test := range tests {
		err := refuseForeign(t.Context(),
			holding{definition: &apiextensionsv1.CustomResourceDefinition{ObjectMeta: test.meta}},
			[]*unstructured.Unstructured{wanted})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: got error %v, want none", test.what, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) ||
			!strings.Contains(err.Error(), "--adopt-apis")):
			t.Errorf("%s: got error %v, want one with %q and the flag", test.what, err, test.want)
		}
	}
}

func TestStoredVersionsAreNotRemoved(t *testing.T) {
	wanted := &unstructured.Unstructured{
		Object: map[string]any{"spec": map[string]any{"versions": []any{map[string]any{"name": "v1beta1"}}}}}
	wanted.SetKind("CustomResourceDefinition")
	wanted.SetName("workloads.kueue.x-k8s.io")
	there := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: wanted.GetName(),
		Labels: map[string]string{"app.kubernetes.io/name": "kueue"}}}
	there.Status.StoredVersions = []string{"v1beta1"}
	if err := refuseStoredVersions(t.Context(), holding{definition: there},
		[]*unstructured.Unstructured{wanted}); err != nil {
		t.Errorf("the same version: got error %v, want none", err)
	}
	there.Status.StoredVersions = []string{"v1beta1", "v1beta2"}
	if err := refuseStoredVersions(t.Context(), holding{definition: there},
		[]*unstructured.Unstructured{wanted}); err == nil || !strings.Contains(err.Error(), "has stored objects in v1beta2") {
		t.Errorf("another version: got error %v, want the stored version named", err)
	}
}
