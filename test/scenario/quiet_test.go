package scenario

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// quietPeriod is how long the cluster must be without writes.
const quietPeriod = 15 * time.Second

// TestNoWritesWhileNothingChanges: while one gang runs and another waits, the API server receives no writes except
// those of leases.
func TestNoWritesWhileNothingChanges(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.Create(w.gang("runs", "gpu", 8, time.Hour), w.gang("waits", "gpu", 8, time.Hour))
	harness.Until(w.World, &batchv1.JobList{}, "the pods of one gang are ready", func(list *batchv1.JobList) bool {
		return len(list.Items) == 1 && list.Items[0].Status.Ready != nil && *list.Items[0].Status.Ready == 8
	})
	harness.Until(w.World, &kueue.WorkloadList{}, "the other gang waits", func(list *kueue.WorkloadList) bool {
		waiting := 0
		for _, workload := range list.Items {
			if meta.IsStatusConditionFalse(workload.Status.Conditions, kueue.WorkloadQuotaReserved) {
				waiting++
			}
		}
		return len(list.Items) == 2 && waiting == 1
	})
	// Objects of earlier tests may still be garbage-collected: the state is steady once a whole period passes without a
	// write.
	deadline := time.Now().Add(harness.Patience)
	for {
		before := w.Cluster.Writes(t)
		select {
		case <-time.After(quietPeriod): // no event shows that nothing happens
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		after := w.Cluster.Writes(t)
		if maps.Equal(before, after) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("writes in the last %s, in which no job changed: %s; want none", quietPeriod, difference(before, after))
		}
	}
}

// difference returns the counters that have changed, each with its increase.
func difference(before, after map[string]float64) string {
	var out []string
	for key, count := range after {
		if count != before[key] {
			out = append(out, fmt.Sprintf("%s ×%v", key, count-before[key]))
		}
	}
	return strings.Join(out, ", ")
}
