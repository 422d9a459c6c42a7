package crdwatch

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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

// TestACacheReadsItsNamespaceAndWhatIsInNone: a cache of one namespace, of an API server with a Workload there and a ClusterQueue.
func TestACacheReadsItsNamespaceAndWhatIsInNone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served := map[string]struct{ kind, metadata string }{
			"/apis/kueue.x-k8s.io/v1beta1/namespaces/team-a/workloads": {"Workload", `{"name":"a","namespace":"team-a"}`},
			"/apis/kueue.x-k8s.io/v1beta1/clusterqueues":               {"ClusterQueue", `{"name":"a"}`},
		}[r.URL.Path]
		asks := r.URL.Query()
		if served.kind == "" || asks.Get("watch") != "true" || asks.Get("allowWatchBookmarks") != "true" || asks.Get("sendInitialEvents") != "true" {
			t.Errorf("asked for %s", r.URL)
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		send := func(event, metadata string) {
			_, _ = fmt.Fprintf(w, `{"type":%q,"object":{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":%q,"metadata":%s}}`+"\n", event, served.kind, metadata)
		}
		send("ADDED", served.metadata)
		send("BOOKMARK", `{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"7"}`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	scheme := testcluster.Scheme()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(workloads, meta.RESTScopeNamespace)
	mapper.Add(kueue.GroupVersion.WithKind("ClusterQueue"), meta.RESTScopeRoot)
	c, err := NewCache(&rest.Config{Host: server.URL}, cache.Options{
		Scheme: scheme, Mapper: mapper, HTTPClient: server.Client(), DefaultNamespaces: map[string]cache.Config{"team-a": {}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache does not begin")
	}
	for object, key := range map[client.Object]client.ObjectKey{&kueue.Workload{}: {Namespace: "team-a", Name: "a"}, &kueue.ClusterQueue{}: {Name: "a"}} {
		if err := c.Get(ctx, key, object); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestACacheThatKeepsAPartOfACustomResourceIsRefused(t *testing.T) {
	scheme := testcluster.Scheme()
	for what, test := range map[string]struct {
		options cache.Options
		refused string
	}{
		"all":                                {options: cache.Options{}},
		"one namespace":                      {options: cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}}}},
		"some pods":                          {options: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: labels.Nothing()}}}},
		"a change of what is kept of one":    {options: cache.Options{ByObject: map[client.Object]cache.ByObject{&kueue.Workload{}: {Transform: cache.TransformStripManagedFields()}}}},
		"two namespaces":                     {options: cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}}, refused: "more than one namespace"},
		"all by labels":                      {options: cache.Options{DefaultLabelSelector: labels.Nothing()}, refused: "selects by labels"},
		"Workloads by labels":                {options: cache.Options{ByObject: map[client.Object]cache.ByObject{&kueue.Workload{}: {Label: labels.Nothing()}}}, refused: "a part of the custom resource Workload"},
		"Workloads of a namespace of theirs": {options: cache.Options{ByObject: map[client.Object]cache.ByObject{&kueue.Workload{}: {Namespaces: map[string]cache.Config{"a": {}}}}}, refused: "a part of the custom resource Workload"},
	} {
		t.Run(what, func(t *testing.T) {
			test.options.Scheme = scheme
			_, err := namespaceOf(test.options)
			if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("it is refused as %v, want %q", err, test.refused)
			}
		})
	}
}
