package chart

import (
	"context"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

// definitionClient returns a client whose scheme includes CustomResourceDefinitions.
func definitionClient(t *testing.T) client.Client {
	t.Helper()
	withDefinitions := scheme.Scheme
	if err := apiextensionsv1.AddToScheme(withDefinitions); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(testcluster.Get(t).Config, client.Options{Scheme: withDefinitions})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// createForeignDefinition creates a definition of another owner.
func createForeignDefinition(t *testing.T, group, plural, kind, owner string) {
	t.Helper()
	c, preserve := definitionClient(t), true
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, Labels: map[string]string{"app.kubernetes.io/name": owner}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind,
				ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
					XPreserveUnknownFields: &preserve}}}},
		},
	}
	if group == "jobset.x-k8s.io" {
		definition.Spec.Versions[0].Name = "v1alpha2"
		definition.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, of a test"}
	}
	if err := c.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
}

// TestDefinitionsInUnknownVersionsAreLeftAlone checks that the chart rejects an existing definition with a version that
// Muster's lacks, before it changes any definition: the API server would refuse to remove the version after other
// definitions were replaced.
func TestDefinitionsInUnknownVersionsAreLeftAlone(t *testing.T) {
	h := newHelm(t)
	createForeignDefinition(t, "kueue.x-k8s.io", "localqueues", "LocalQueue", "kueue") // in v1alpha1
	adopt := h.installer()
	adopt.TakeOwnership = true
	_, err := adopt.Run(load(t), values{"crds": values{"adopt": true}})
	if err == nil || !strings.Contains(err.Error(), "localqueues.kueue.x-k8s.io in v1alpha1") {
		t.Fatalf("installation returned %v, want an error about localqueues.kueue.x-k8s.io in v1alpha1", err)
	}
	checkOnlyForeignDefinition(t)
}

// checkOnlyForeignDefinition checks that the only definition is a foreign one.
func checkOnlyForeignDefinition(t *testing.T) {
	t.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := definitionClient(t).List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Labels["muster.dev/served"] != "" {
		t.Fatalf("there are %d definitions after a rejected installation, want only the foreign one, not adopted", len(list.Items))
	}
}

// TestDefinitionsOfAnotherReleaseAreDeletedWithIt checks that Helm still deletes an adopted definition with the release
// that created it. docs/operate/moving.md therefore removes the release's Secrets instead of uninstalling it.
func TestDefinitionsOfAnotherReleaseAreDeletedWithIt(t *testing.T) {
	h := newHelm(t)
	other := h.installer()
	other.ReleaseName = "the-other"
	if _, err := other.Run(otherChart(), nil); err != nil {
		t.Fatal(err)
	}
	adopt := h.installer()
	adopt.TakeOwnership, adopt.Replace = true, true
	if _, err := adopt.Run(load(t), values{"crds": values{"adopt": true}}); err != nil {
		t.Fatalf("adopting the definition: %v", err)
	}
	if _, err := action.NewUninstall(h.config).Run("the-other"); err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	err := definitionClient(t).Get(t.Context(), client.ObjectKey{Name: "jobsets.jobset.x-k8s.io"}, &definition)
	if client.IgnoreNotFound(err) != nil || err == nil && definition.DeletionTimestamp == nil {
		t.Errorf("the definition remains after its release was uninstalled (%v), so docs/operate/moving.md warns of nothing", err)
	}
}

// removeFinalizers removes the finalizers of Workloads, ClusterQueues and ResourceFlavors, as an administrator does who
// removes Muster completely.
func removeFinalizers(t *testing.T) {
	t.Helper()
	none := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
	for _, object := range finalized(t) {
		if err := testcluster.Get(t).Client.Patch(context.Background(), object, none); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// finalizedKinds returns an empty list for each kind whose objects have finalizers of the operator.
func finalizedKinds() []client.ObjectList {
	return []client.ObjectList{&kueue.WorkloadList{}, &kueue.ClusterQueueList{}, &kueue.ResourceFlavorList{}}
}

// finalized returns all objects of these kinds.
func finalized(t *testing.T) []client.Object {
	t.Helper()
	var objects []client.Object
	for _, list := range finalizedKinds() {
		switch err := testcluster.Get(t).Client.List(context.Background(), list); {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			continue // the test did not install the kind
		case err != nil:
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			objects = append(objects, item.(client.Object))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return objects
}

// deleteDefinitions deletes all definitions, and waits until they are gone.
func deleteDefinitions(t *testing.T) {
	t.Helper()
	c := definitionClient(t)
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	var list apiextensionsv1.CustomResourceDefinitionList
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := c.List(ctx, &list); err != nil {
			return false, err
		}
		for i := range list.Items {
			if err := client.IgnoreNotFound(c.Delete(ctx, &list.Items[i])); err != nil {
				return false, err
			}
		}
		return len(list.Items) == 0, nil
	})
	if err != nil {
		for _, definition := range list.Items {
			t.Logf("%s is left: %+v", definition.Name, definition.Status.Conditions)
		}
		for _, object := range finalized(t) {
			t.Logf("%T %s/%s of %v is left with %v", object, object.GetNamespace(), object.GetName(),
				object.GetOwnerReferences(), object.GetFinalizers())
		}
		t.Fatalf("waiting until all definitions are deleted: %v", err)
	}
}

// TestDefinitionsOfOtherOwnersAreRejectedByName checks that the chart installs nothing over a definition of another
// owner, names the definition and the owner in its error, and takes the definition over with crds.adopt.
func TestDefinitionsOfOtherOwnersAreRejectedByName(t *testing.T) {
	h := newHelm(t)
	createForeignDefinition(t, "jobset.x-k8s.io", "jobsets", "JobSet", "the-other-jobset")
	_, err := h.installer().Run(load(t), nil)
	if err == nil || !strings.Contains(err.Error(), "jobsets.jobset.x-k8s.io belongs to the-other-jobset") ||
		!strings.Contains(err.Error(), "crds.adopt") {
		t.Fatalf("installation returned %v, want an error with the definition, its owner and crds.adopt", err)
	}
	checkOnlyForeignDefinition(t)

	adopt := h.installer()
	adopt.TakeOwnership, adopt.Replace = true, true
	if _, err := adopt.Run(load(t), values{"crds": values{"adopt": true}}); err != nil {
		t.Fatalf("adopting the definition: %v", err)
	}
	var adopted apiextensionsv1.CustomResourceDefinition
	if err := definitionClient(t).Get(t.Context(), client.ObjectKey{Name: "jobsets.jobset.x-k8s.io"},
		&adopted); err != nil || adopted.Labels["muster.dev/served"] != "true" {
		t.Errorf("the adopted definition has labels %v, want muster.dev/served=true (%v)", adopted.Labels, err)
	}
}

// TestVolcanosDefinitionsAreLeftAlone checks that the chart by default leaves an installed Volcano its API and serves
// the others, and that it rejects `volcano: native` there.
func TestVolcanosDefinitionsAreLeftAlone(t *testing.T) {
	h := newHelm(t)
	createForeignDefinition(t, "batch.volcano.sh", "jobs", "Job", "volcano")
	if _, err := h.installer().Run(load(t), values{"config": values{"volcano": "native"}}); err == nil ||
		!strings.Contains(err.Error(), "jobs.batch.volcano.sh belongs to volcano") {
		t.Fatalf("installation with volcano: native returned %v, want an error with Volcano's definition", err)
	}
	installed := h.install(nil)
	for text, want := range map[string]bool{"name: jobs.batch.volcano.sh": false, "muster-vcjob": false,
		"jobsets.jobset.x-k8s.io": true} {
		if got := strings.Contains(installed.Manifest, text); got != want {
			t.Errorf("the manifest contains %q = %t, want %t", text, got, want)
		}
	}
	if !strings.Contains(installed.Info.Notes, "Volcano's") {
		t.Errorf("the notes do not mention Volcano's API:\n%s", installed.Info.Notes)
	}
}

// otherChart returns a chart with a definition of JobSets among its templates.
func otherChart() *helmchart.Chart {
	return &helmchart.Chart{
		Metadata: &helmchart.Metadata{APIVersion: "v2", Name: "the-other", Version: "1.0.0"},
		Templates: []*helmchart.File{{Name: "templates/crd.yaml", Data: []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: jobsets.jobset.x-k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, of a test"}
spec:
  group: jobset.x-k8s.io
  scope: Namespaced
  names: {plural: jobsets, singular: jobset, kind: JobSet, listKind: JobSetList}
  versions:
  - {name: v1alpha2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)}},
	}
}
