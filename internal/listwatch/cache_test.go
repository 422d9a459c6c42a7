package listwatch

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

// servedKind is what a test's API server serves of a kind: a list with one object, and no later change.
type servedKind struct{ kind, metadata string }

// serve returns an API server that serves lists, and watches that begin where the lists end.
func serve(t *testing.T, serves map[string]servedKind) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served, asks := serves[r.URL.Path], r.URL.Query()
		switch {
		case served.kind == "" || asks.Get("sendInitialEvents") != "":
			t.Errorf("unexpected request %s", r.URL)
			http.NotFound(w, r)
		case asks.Get("watch") == "":
			if asks.Get("limit") != "" || asks.Get("resourceVersion") != "" || asks.Get("resourceVersionMatch") != "" {
				t.Errorf("unexpected list request %s", r.URL)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"apiVersion":"kueue.x-k8s.io/v1beta1","items":[{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":%q,"metadata":%s}],"kind":"List","metadata":{"resourceVersion":"7"}}`+"\n",
				served.kind, served.metadata)
		case asks.Get("resourceVersion") != "7" || asks.Get("allowWatchBookmarks") != "true":
			t.Errorf("unexpected watch request %s", r.URL)
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":%q,"metadata":%s}}`+
				"\n", served.kind, strings.Replace(served.metadata, `"a"`, `"b"`, 1))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// TestACacheReadsItsNamespaceAndClusterScopedObjects: a cache of one namespace reads a Workload in it, a ClusterQueue,
// and another of each that is created later.
func TestACacheReadsItsNamespaceAndClusterScopedObjects(t *testing.T) {
	server := serve(t, map[string]servedKind{
		"/apis/kueue.x-k8s.io/v1beta1/namespaces/team-a/workloads": {"Workload", `{"name":"a","namespace":"team-a"}`},
		"/apis/kueue.x-k8s.io/v1beta1/clusterqueues":               {"ClusterQueue", `{"name":"a"}`},
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(workloads, meta.RESTScopeNamespace)
	mapper.Add(kueue.GroupVersion.WithKind("ClusterQueue"), meta.RESTScopeRoot)
	c, err := NewCache(nil)(&rest.Config{Host: server.URL}, cache.Options{
		Scheme: testcluster.Scheme(), Mapper: mapper, HTTPClient: server.Client(),
		DefaultNamespaces: map[string]cache.Config{"team-a": {}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache does not sync")
	}
	for object, key := range map[client.Object]client.ObjectKey{&kueue.Workload{}: {Namespace: "team-a", Name: "a"},
		&kueue.ClusterQueue{}: {Name: "a"}} {
		if err := c.Get(ctx, key, object); err != nil { // Get waits for the initial list
			t.Errorf("%T: %v", object, err)
		}
		untilAdded(t, ctx, c, object, "b")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// untilAdded waits until the cache has reported the object.
func untilAdded(t *testing.T, ctx context.Context, c cache.Cache, of client.Object, name string) {
	t.Helper()
	informer, err := c.GetInformer(ctx, of)
	if err != nil {
		t.Fatal(err)
	}
	added := make(chan string, 10)
	if _, err := informer.AddEventHandler(
		toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) { added <- o.(client.Object).GetName() }}); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case is := <-added:
			if is == name {
				return
			}
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %T %s is reported: %v", of, name, ctx.Err())
		}
	}
}

func TestACacheOfAPartOfACustomResourceIsRefused(t *testing.T) {
	scheme := testcluster.Scheme()
	for what, test := range map[string]struct {
		options cache.Options
		refused string
	}{
		"all":           {options: cache.Options{}},
		"one namespace": {options: cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}}}},
		"some pods": {
			options: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: labels.Nothing()}}}},
		"a transform of one kind": {
			options: cache.Options{ByObject: map[client.Object]cache.ByObject{
				&kueue.Workload{}: {Transform: cache.TransformStripManagedFields()}}}},
		"two namespaces": {options: cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}},
			refused: "more than one namespace"},
		"one namespace by labels": {
			options: cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {LabelSelector: labels.Nothing()}}},
			refused: "selects by labels"},
		"all by labels": {options: cache.Options{DefaultLabelSelector: labels.Nothing()},
			refused: "selects by labels"},
		"Workloads by labels": {
			options: cache.Options{ByObject: map[client.Object]cache.ByObject{&kueue.Workload{}: {Label: labels.Nothing()}}},
			refused: "a part of the custom resource Workload"},
		"Workloads of one namespace": {
			options: cache.Options{ByObject: map[client.Object]cache.ByObject{
				&kueue.Workload{}: {Namespaces: map[string]cache.Config{"a": {}}}}},
			refused: "a part of the custom resource Workload"},
	} {
		t.Run(what, func(t *testing.T) {
			test.options.Scheme = scheme
			_, err := namespaceOf(test.options)
			if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got error %v, want %q", err, test.refused)
			}
		})
	}
}

func TestBuiltInScope(t *testing.T) {
	pods, scheme := corev1.SchemeGroupVersion.WithKind("Pod"), testcluster.Scheme()
	byPod := func(by cache.ByObject) map[client.Object]cache.ByObject {
		return map[client.Object]cache.ByObject{&corev1.Pod{}: by}
	}
	for what, test := range map[string]struct {
		options   cache.Options
		namespace string
		part      bool
	}{
		"all": {},
		"one namespace": {options: cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}}},
			namespace: "a"},
		"all of one kind": {options: cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}},
			ByObject: byPod(cache.ByObject{Namespaces: map[string]cache.Config{cache.AllNamespaces: {}}})}},
		"a namespace of one kind": {
			options:   cache.Options{ByObject: byPod(cache.ByObject{Namespaces: map[string]cache.Config{"a": {}}})},
			namespace: "a"},
		"by labels": {options: cache.Options{ByObject: byPod(cache.ByObject{Label: labels.Nothing()})},
			part: true},
		"all kinds by labels": {options: cache.Options{DefaultLabelSelector: labels.Nothing()}, part: true},
		"by labels in a namespace": {
			options:   cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {LabelSelector: labels.Nothing()}}},
			namespace: "a", part: true},
		"two namespaces": {
			options: cache.Options{ByObject: byPod(cache.ByObject{Namespaces: map[string]cache.Config{"a": {}, "b": {}}})},
			part:    true},
		"another kind by labels": {
			options: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Event{}: {Label: labels.Nothing()}}}},
		"all, with a transform": {
			options: cache.Options{ByObject: byPod(cache.ByObject{Transform: cache.TransformStripManagedFields()})}},
	} {
		test.options.Scheme = scheme
		namespace, whole := builtInScope(pods, test.options)
		if whole == test.part || whole && namespace != test.namespace {
			t.Errorf("%s: namespace %q, whole %t", what, namespace, whole)
		}
	}
}
