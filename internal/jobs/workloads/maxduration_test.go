package workloads

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/workload"
)

// TestTheSmallerLimitOfTheQueuesSaysWhenAJobGivesItsQuotaBack, counted from its admission.
func TestTheSmallerLimitOfTheQueuesSaysWhenAJobGivesItsQuotaBack(t *testing.T) {
	admitted := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := &kueue.Workload{Spec: kueue.WorkloadSpec{QueueName: "q"},
		Status: kueue.WorkloadStatus{Admission: &kueue.Admission{ClusterQueue: "cq"}}}
	workload.SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, "Admitted", "", admitted)
	bounded := func(text string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "cq", Annotations: map[string]string{muster.MaxDurationAnnotation: text}}
	}
	for name, test := range map[string]struct {
		local, cluster, source string
		want                   time.Duration
	}{
		"none": {local: "0", cluster: ""},
		"the ClusterQueue's": {local: "0", cluster: "1h", want: time.Hour,
			source: "muster.dev/max-duration of ClusterQueue cq"},
		"the LocalQueue's": {local: "1h", cluster: "2h", want: time.Hour,
			source: "muster.dev/max-duration of LocalQueue cq"},
	} {
		queues := jobs.QueueFacts{Local: map[string]*kueue.LocalQueue{"q": {ObjectMeta: bounded(test.local)}},
			Cluster: map[string]*kueue.ClusterQueue{"cq": {ObjectMeta: bounded(test.cluster)}}}
		got := limited(jobs.Admission{}, w, queues)
		until := time.Time{}
		if test.want > 0 {
			until = admitted.Add(test.want)
		}
		if !got.Until.Equal(until) || got.Bound != test.want || got.BoundSource != test.source {
			t.Errorf("%s: until %s after %s by %q, want %s by %q", name, got.Until, got.Bound, got.BoundSource, test.want,
				test.source)
		}
	}
	if got := limited(jobs.Admission{}, w, jobs.QueueFacts{}); !got.Until.IsZero() {
		t.Errorf("missing queues limit the job until %s, want no limit", got.Until)
	}
}
