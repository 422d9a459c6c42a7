package testcluster

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// Writes counts the mutating requests so far, including failed ones, by verb and resource, such as `PATCH
// workloads/status`. Leases are left out.
func (c *Cluster) Writes(t testing.TB) map[string]float64 {
	t.Helper()
	return c.requests(t, "POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION", "APPLY")
}

// Gets counts the GET requests for single objects so far, in the same form.
func (c *Cluster) Gets(t testing.TB) map[string]float64 {
	t.Helper()
	return c.requests(t, "GET")
}

// requests counts requests with the verbs.
func (c *Cluster) requests(t testing.TB, verbs ...string) map[string]float64 {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatalf("reading the API server's metrics: %v", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("reading the API server's metrics: %v", err)
	}
	family := families["apiserver_request_total"]
	if family == nil {
		t.Fatal("the API server has no apiserver_request_total")
	}
	counts := map[string]float64{}
	for _, m := range family.Metric {
		label := map[string]string{}
		for _, pair := range m.Label {
			label[pair.GetName()] = pair.GetValue()
		}
		// Reviews are queries, although they use POST.
		if !slices.Contains(verbs, label["verb"]) || label["resource"] == "leases" ||
			strings.HasSuffix(label["resource"], "reviews") {
			continue
		}
		counts[strings.TrimRight(label["verb"]+" "+label["resource"]+"/"+label["subresource"], "/")] += m.Counter.GetValue()
	}
	return counts
}
