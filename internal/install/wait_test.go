package install_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/testcluster"
)

// TestAwaitServed: AwaitServed waits until the definitions are served, and fails for one that never will be.
func TestAwaitServed(t *testing.T) {
	cluster := testcluster.Get(t)
	direct := clientOf(t, cluster.Config)
	kinds := map[string]string{"firsts": "First", "seconds": "Second", "thirds": "Third"}
	for plural, kind := range kinds {
		made(t, direct, plural, kind)
	}
	if err := install.AwaitServed(t.Context(), cluster.Config); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("late.example.com/v1")
		list.SetKind(kind + "List")
		if err := direct.List(t.Context(), list); err != nil {
			t.Errorf("listing right after AwaitServed: %v", err)
		}
	}

	conflicting := made(t, direct, "fourths", "First")
	refused := func(ctx context.Context) (bool, error) {
		err := direct.Get(ctx, client.ObjectKeyFromObject(conflicting), conflicting)
		return len(conflicting.Status.Conditions) > 0, err
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, refused); err != nil {
		t.Fatal(err)
	}
	if err := install.AwaitServed(t.Context(), cluster.Config); err == nil ||
		!strings.Contains(err.Error(), "fourths.late.example.com cannot be established: its names are refused") {
		t.Errorf("a kind that another definition has: got error %v, want one that names the definition", err)
	}
}

// TestAwaitServedWaitsForItsRights: an API server that has just started forbids everything until it has read the roles.
func TestAwaitServedWaitsForItsRights(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if asked++; asked <= 2 {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{},"items":[]}`))
	}))
	defer server.Close()
	if err := install.AwaitServed(t.Context(),
		&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}); err != nil ||
		asked != 3 {
		t.Errorf("%v after %d requests, want no error after the third", err, asked)
	}
}

func TestCheckInstalled(t *testing.T) {
	served := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !served || r.URL.Path != "/apis/kueue.x-k8s.io/v1beta1" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"kueue.x-k8s.io/v1beta1","resources":[]}`))
	}))
	defer server.Close()
	if err := install.CheckInstalled(&rest.Config{Host: server.URL}); err == nil ||
		!strings.Contains(err.Error(), "--install-apis") {
		t.Errorf("error without definitions = %v, want one that says how to install them", err)
	}
	served = true
	if err := install.CheckInstalled(&rest.Config{Host: server.URL}); err != nil {
		t.Errorf("error with definitions = %v", err)
	}
}

// made creates a definition labeled as Muster's, and deletes it after the test.
func made(t *testing.T, c client.Client, plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	version := apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}
	unserved := *version.DeepCopy()
	unserved.Name, unserved.Served, unserved.Storage = "v1alpha1", false, false
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".late.example.com",
			Labels: map[string]string{muster.ServedLabel: "true"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "late.example.com", Scope: apiextensionsv1.ClusterScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version, unserved}},
	}
	if err := c.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), definition); err != nil {
			t.Error(err)
		}
	})
	return definition
}
