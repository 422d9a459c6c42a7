package install_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/testcluster"
)

// TestVolcanoDefinitionsAreLeftAloneUnlessMusterServesThem covers one order of events: Volcano is installed first, then
// Muster is configured to serve the Jobs.
func TestVolcanoDefinitionsAreLeftAloneUnlessMusterServesThem(t *testing.T) {
	cluster := testcluster.Get(t)
	direct := clientOf(t, cluster.Config)
	preserve := true
	theirs := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "jobs.batch.volcano.sh"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "batch.volcano.sh", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "jobs", Singular: "job", Kind: "Job",
				ListKind: "JobList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
					XPreserveUnknownFields: &preserve}}}},
		},
	}
	var there apiextensionsv1.CustomResourceDefinition
	switch err := direct.Get(t.Context(), client.ObjectKeyFromObject(theirs), &there); {
	case err == nil:
		// Another test has installed Muster's definitions: without the label they look like those of Volcano.
		there.Labels = nil
		if err := direct.Update(t.Context(), &there); err != nil {
			t.Fatal(err)
		}
	case client.IgnoreNotFound(err) != nil:
		t.Fatal(err)
	default:
		if err := direct.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(mode v1alpha1.VolcanoMode, wantElsewhere, wantOurs bool) {
		t.Helper()
		elsewhere, err := install.VolcanoRunsJobs(t.Context(), cluster.Config, mode)
		if err != nil || elsewhere != wantElsewhere {
			t.Errorf("%q: left to Volcano: %v and %v, want %v", mode, elsewhere, err, wantElsewhere)
		}
		if err := install.Apply(t.Context(), cluster.Config, install.Options{Volcano: mode}); err != nil {
			t.Fatal(err)
		}
		var now apiextensionsv1.CustomResourceDefinition
		if err := direct.Get(t.Context(), client.ObjectKeyFromObject(theirs), &now); err != nil {
			t.Fatal(err)
		}
		if ours := now.Labels["muster.dev/served"] == "true"; ours != wantOurs {
			t.Errorf("%q: the definition is Muster's: %v, want %v", mode, ours, wantOurs)
		}
	}
	apply("", true, false)
	apply(v1alpha1.VolcanoAuto, true, false)
	apply(v1alpha1.VolcanoExternal, true, false)
	apply(v1alpha1.VolcanoNative, false, true)
	apply(v1alpha1.VolcanoAuto, false, true)
	apply(v1alpha1.VolcanoExternal, true, true) // the definition stays, but nothing is applied for it any more

	// Volcano is installed on top, and keeps the definition as it is.
	podGroups := theirs.DeepCopy()
	podGroups.ObjectMeta = metav1.ObjectMeta{Name: "podgroups.scheduling.volcano.sh"}
	podGroups.Spec.Group = "scheduling.volcano.sh"
	podGroups.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "podgroups", Singular: "podgroup",
		Kind: "PodGroup", ListKind: "PodGroupList"}
	if err := direct.Create(t.Context(), podGroups); err != nil {
		t.Fatal(err)
	}
	apply(v1alpha1.VolcanoAuto, true, true)
	apply(v1alpha1.VolcanoNative, false, true)
	if err := direct.Delete(t.Context(), podGroups); err != nil {
		t.Fatal(err)
	}
}
