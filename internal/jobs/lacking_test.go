package jobs

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestLackedCountsFromTheLastPodCreated, not from one that was lost and recreated, and starts from scratch for another
// job of the same name or after a time with no pods missing.
func TestLackedCountsFromTheLastPodCreated(t *testing.T) {
	var l lacks
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	job := func(uid types.UID) client.Object {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: uid}}
	}
	for i, look := range []struct {
		uid     types.UID
		lacking int32
		since   int
	}{{"u", 9, 0}, {"u", 9, 0}, {"u", 5, 2}, {"u", 6, 2}, {"u", 5, 2}, {"u", 4, 5}, {"other", 4, 6}, {"other", 0, 7}, {"other", 4, 8}, {"other", 4, 8}} {
		now := began.Add(time.Duration(i) * time.Second)
		before := l.before(job(look.uid))
		if since := before.with(look.lacking, now).Since; !since.Equal(began.Add(time.Duration(look.since) * time.Second)) {
			t.Errorf("look %d: it gets none since %s, want %d s after the first", i, since, look.since)
		}
		seen := Seen[client.Object]{Job: job(look.uid), Lacked: before, Admission: Admission{Grant: Admitted}, Now: now}
		l.note(seen.Job, seen.lackedAfter(Progress{Active: true, Lacking: look.lacking, Refusing: look.lacking > 0}))
	}
}
