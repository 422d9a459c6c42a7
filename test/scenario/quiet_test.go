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

// quiet is how long nobody may write.
const quietPeriod = 15 * time.Second

// TestNoWritesWhileNothingChanges: with a gang that runs and one that waits, no
// request but those for leases changes anything.
func TestNoWritesWhileNothingChanges(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.Create(w.gang("runs", "gpu", 8, time.Hour), w.gang("waits", "gpu", 8, time.Hour))
	harness.Until(w.World, &batchv1.JobList{}, "one gang is ready", func(list *batchv1.JobList) bool {
		return len(list.Items) == 1 && list.Items[0].Status.Ready != nil && *list.Items[0].Status.Ready == 8
	})
	harness.Until(w.World, &kueue.WorkloadList{}, "the other waits", func(list *kueue.WorkloadList) bool {
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
	deadline := time.Now().Add(harness.Patience)
	for {
		before := w.Cluster.Writes(t)
		select {
		case <-time.After(quietPeriod): // that nothing happens can only be seen by watching for a while
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		after := w.Cluster.Writes(t)
		if maps.Equal(before, after) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("in %s without a change of any job, these were written: %s", quietPeriod, difference(before, after))
		}
	}
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
