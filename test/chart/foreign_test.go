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

// definitions is a client that knows definitions.
func definitions(t *testing.T) client.Client {
	t.Helper()
	known := scheme.Scheme
	if err := apiextensionsv1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(testcluster.Get(t).Config, client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// others makes a definition as somebody else would.
func others(t *testing.T, group, plural, kind, owner string) {
	t.Helper()
	c, keep := definitions(t), true
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, Labels: map[string]string{"app.kubernetes.io/name": owner}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}}}},
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

// TestDefinitionsInUnknownVersionsAreLeftAlone: the API server would refuse to have such a version taken away, when
// others of the definitions are Muster's already.
func TestDefinitionsInUnknownVersionsAreLeftAlone(t *testing.T) {
	h := newHelm(t)
	others(t, "kueue.x-k8s.io", "localqueues", "LocalQueue", "kueue") // in v1alpha1
	adopt := h.installer()
	adopt.TakeOwnership = true
	_, err := adopt.Run(load(t), values{"crds": values{"adopt": true}})
	if err == nil || !strings.Contains(err.Error(), "localqueues.kueue.x-k8s.io in v1alpha1") {
		t.Fatalf("the error is %v", err)
	}
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := definitions(t).List(t.Context(), &list); err != nil || len(list.Items) != 1 || list.Items[0].Labels["muster.dev/served"] != "" {
		t.Fatalf("after a refusal there are %d definitions, and %v", len(list.Items), err)
	}
}

// TestDefinitionsOfAnotherReleaseAreDeletedWithIt: a definition that was taken over is still in the list of the release
// that brought it. So docs/moving.md has that release forgotten, not uninstalled.
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
		t.Fatalf("taking it over: %v", err)
	}
	if _, err := action.NewUninstall(h.config).Run("the-other"); err != nil {
		t.Fatal(err)
	}
	var now apiextensionsv1.CustomResourceDefinition
	err := definitions(t).Get(t.Context(), client.ObjectKey{Name: "jobsets.jobset.x-k8s.io"}, &now)
	if client.IgnoreNotFound(err) != nil || err == nil && now.DeletionTimestamp == nil {
		t.Errorf("the definition outlives the uninstall (%v): the page warns of what does not happen", err)
	}
}

// letGo takes the finalizers from what an operator made or ran, as an administrator does who removes all of Muster.
func letGo(t *testing.T) {
	t.Helper()
	c := testcluster.Get(t).Client
	for _, list := range []client.ObjectList{&kueue.WorkloadList{}, &kueue.ClusterQueueList{}, &kueue.ResourceFlavorList{}} {
		switch err := c.List(context.Background(), list); {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			continue // its definition was not installed
		case err != nil:
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			none := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
			return client.IgnoreNotFound(c.Patch(context.Background(), item.(client.Object), none))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// forget deletes all definitions, and waits until they are gone.
func forget(t *testing.T) {
	t.Helper()
	c := definitions(t)
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var list apiextensionsv1.CustomResourceDefinitionList
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
		t.Fatalf("waiting until all definitions are gone: %v", err)
	}
}

func TestDefinitionsOfOtherOwnersAreRejectedByName(t *testing.T) {
	h := newHelm(t)
	others(t, "jobset.x-k8s.io", "jobsets", "JobSet", "the-other-jobset")
	_, err := h.installer().Run(load(t), nil)
	if err == nil || !strings.Contains(err.Error(), "jobsets.jobset.x-k8s.io belongs to the-other-jobset") || !strings.Contains(err.Error(), "crds.adopt") {
		t.Fatalf("the error is %v", err)
	}
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := definitions(t).List(t.Context(), &list); err != nil || len(list.Items) != 1 || list.Items[0].Labels["muster.dev/served"] != "" {
		t.Fatalf("after a refusal there are %d definitions, and %v", len(list.Items), err)
	}

	adopt := h.installer()
	adopt.TakeOwnership, adopt.Replace = true, true
	if _, err := adopt.Run(load(t), values{"crds": values{"adopt": true}}); err != nil {
		t.Fatalf("taking it over: %v", err)
	}
	var now apiextensionsv1.CustomResourceDefinition
	if err := definitions(t).Get(t.Context(), client.ObjectKey{Name: "jobsets.jobset.x-k8s.io"}, &now); err != nil || now.Labels["muster.dev/served"] != "true" {
		t.Errorf("it was not taken over: labels %v, %v", now.Labels, err)
	}
}

func TestVolcanosDefinitionsStayItsOwn(t *testing.T) {
	h := newHelm(t)
	others(t, "batch.volcano.sh", "jobs", "Job", "volcano")
	if _, err := h.installer().Run(load(t), values{"config": values{"volcano": "native"}}); err == nil || !strings.Contains(err.Error(), "jobs.batch.volcano.sh belongs to volcano") {
		t.Fatalf("as Muster's own: %v", err)
	}
	done := h.install(nil)
	if strings.Contains(done.Manifest, "name: jobs.batch.volcano.sh") || strings.Contains(done.Manifest, "muster-vcjob") || !strings.Contains(done.Manifest, "jobsets.jobset.x-k8s.io") {
		t.Error("what is Volcano's was applied, or what is not was left out")
	}
	if !strings.Contains(done.Info.Notes, "Volcano's") {
		t.Errorf("the notes say nothing of it: %s", done.Info.Notes)
	}
}

// otherChart is a chart with a definition of JobSets among its templates.
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
