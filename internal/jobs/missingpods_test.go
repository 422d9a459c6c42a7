package jobs

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestMissingPodsCountFromTheLastPodCreated: the time since which no pod was created starts with the last one that was,
// except one that replaces a lost pod. It starts again for another job of the same name, and once no pods were missing.
func TestMissingPodsCountFromTheLastPodCreated(t *testing.T) {
	known := map[types.UID]MissingPods{}
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	job := func(uid types.UID) client.Object {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: uid}}
	}
	for i, step := range []struct {
		uid     types.UID
		missing int32
		since   int // in seconds after the first step
	}{{"u", 9, 0}, {"u", 9, 0}, {"u", 5, 2}, {"u", 6, 2}, {"u", 5, 2}, {"u", 4, 5}, {"other", 4, 6}, {"other", 0, 7},
		{"other", 4, 8}, {"other", 4, 8}} {
		now := start.Add(time.Duration(i) * time.Second)
		before := known[step.uid]
		if since := before.with(step.missing, now).Since; !since.Equal(start.Add(time.Duration(step.since) * time.Second)) {
			t.Errorf("step %d: no pod was created since %s, want %d s after the first step", i, since, step.since)
		}
		seen := Seen[client.Object]{Job: job(step.uid), MissingPods: before, Admission: Admission{Grant: Admitted}, Now: now}
		known[step.uid] = seen.MissingPodsAfter(Progress{Active: true, Missing: step.missing, Refusing: step.missing > 0})
	}
}
