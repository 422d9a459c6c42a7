package workloads

import (
	"maps"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// TestAWorkloadSaysHowLongItsJobTakes: a limit that the job's own API enforces is told to the queue, which does not
// enforce it a second time.
func TestAWorkloadSaysHowLongItsJobTakes(t *testing.T) {
	pods := func(seconds int64) []kueue.PodSet {
		podSet := kueue.PodSet{Name: "main", Count: 2}
		podSet.Template.Spec.ActiveDeadlineSeconds = &seconds
		return []kueue.PodSet{podSet}
	}
	expects := func(text string) map[string]string {
		return map[string]string{muster.ExpectedDurationAnnotation: text}
	}
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		described           jobs.Description
		want                map[string]string
	}{
		"nothing": {},
		"its own limit": {described: jobs.Description{Limit: time.Hour},
			want: map[string]string{muster.JobLimitAnnotation: "1h0m0s"}},
		"that of its pods": {described: jobs.Description{PodSets: pods(90)},
			want: map[string]string{muster.JobLimitAnnotation: "1m30s"}},
		"its own before": {described: jobs.Description{Limit: time.Hour, PodSets: pods(90)},
			want: map[string]string{muster.JobLimitAnnotation: "1h0m0s"}},
		"the label before": {labels: map[string]string{kueue.MaxExecTimeSecondsLabel: "60"},
			described: jobs.Description{PodSets: pods(90)}},
		"an estimate": {annotations: expects("90m"), want: expects("1h30m0s")},
		"that of its field": {described: jobs.Description{Estimate: time.Hour},
			want: expects("1h0m0s")},
		"the annotation before the field": {annotations: expects("2h"), described: jobs.Description{Estimate: time.Hour},
			want: expects("2h0m0s")},
		"a mistaken annotation": {annotations: expects("-2h")},
		"an absurd field":       {described: jobs.Description{Estimate: 20 * 365 * 24 * time.Hour}},
	} {
		job := jobWith(tc.labels)
		job.Annotations = tc.annotations
		w := workloadFor(job, jobSetKind, tc.described, "q", priority{}, request{})
		if !maps.Equal(w.Annotations, tc.want) || w.Spec.MaximumExecutionTimeSeconds != nil {
			t.Errorf("%s: annotations %v, want %v; its queue stops it after %v s", name, w.Annotations, tc.want,
				ptr.Deref(w.Spec.MaximumExecutionTimeSeconds, 0))
		}
	}
}

// TestTimesFollowTheJob: also while it runs, and whoever has written others on the Workload. A Workload that the job
// did not make keeps what it says.
func TestTimesFollowTheJob(t *testing.T) {
	said := map[string]string{muster.JobLimitAnnotation: "1h0m0s", muster.ExpectedDurationAnnotation: "30m0s"}
	for name, seen := range map[string]workloadBuilder{"waiting": waiting(), "running": waiting().admitted()} {
		described := seen.w.DeepCopy()
		described.Annotations = said
		changed := respecified(seen.w, described, jobs.Progress{})
		if changed == nil || !maps.Equal(changed.Annotations, said) {
			t.Fatalf("%s: the Workload is changed to %+v, want %v", name, changed, said)
		}
		described.Annotations = nil
		if back := respecified(changed, described, jobs.Progress{}); back == nil || len(back.Annotations) > 0 {
			t.Errorf("%s: without a limit of the job the Workload is changed to %+v", name, back)
		}
		if kept := respecified(changed, changed, jobs.Progress{}); kept != nil {
			t.Errorf("%s: a Workload that was made by hand is changed to %+v", name, kept)
		}
	}
}
