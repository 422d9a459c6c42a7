package scenario

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// quiet is how long nobody may write.
const quiet = 15 * time.Second

// TestNobodyWritesWhileNothingChanges: with a gang that runs and one that waits, no
// request but those for leases changes anything.
func TestNobodyWritesWhileNothingChanges(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.create(w.gang("runs", "gpu", 8, time.Hour), w.gang("waits", "gpu", 8, time.Hour))
	until(w, &batchv1.JobList{}, "one gang is ready", func(list *batchv1.JobList) bool {
		return len(list.Items) == 1 && list.Items[0].Status.Ready != nil && *list.Items[0].Status.Ready == 8
	})
	until(w, &kueue.WorkloadList{}, "the other waits", func(list *kueue.WorkloadList) bool {
		waiting := 0
		for _, workload := range list.Items {
			if meta.IsStatusConditionFalse(workload.Status.Conditions, kueue.WorkloadQuotaReserved) {
				waiting++
			}
		}
		return len(list.Items) == 2 && waiting == 1
	})
	// What other tests left is still being cleared away: the state is steady when a
	// whole window passes without a write.
	deadline := time.Now().Add(patience)
	for {
		before := w.writes()
		select {
		case <-time.After(quiet): // that nothing happens can only be seen by watching for a while
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		after := w.writes()
		if maps.Equal(before, after) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("in %s without a change of any job, these were written: %s", quiet, difference(before, after))
		}
	}
}

// writes counts the API server's requests that change something, by verb and
// resource, leases left out.
func (w *world) writes() map[string]float64 {
	w.Helper()
	clients, err := kubernetes.NewForConfig(w.cluster.Config)
	if err != nil {
		w.Fatal(err)
	}
	text, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		w.Fatal(err)
	}
	family := families["apiserver_request_total"]
	if family == nil {
		w.Fatal("the API server has no apiserver_request_total")
	}
	counts := map[string]float64{}
	for _, m := range family.Metric {
		label := map[string]string{}
		for _, pair := range m.Label {
			label[pair.GetName()] = pair.GetValue()
		}
		switch label["verb"] {
		case "POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION", "APPLY":
		default:
			continue
		}
		// Reviews are questions, asked by POST.
		if label["resource"] == "leases" || strings.HasSuffix(label["resource"], "reviews") {
			continue
		}
		counts[strings.TrimRight(label["verb"]+" "+label["resource"]+"/"+label["subresource"], "/")] += m.Counter.GetValue()
	}
	return counts
}

func difference(before, after map[string]float64) string {
	var out []string
	for key, count := range after {
		if count != before[key] {
			out = append(out, fmt.Sprintf("%s ×%v", key, count-before[key]))
		}
	}
	return strings.Join(out, ", ")
}
