package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// limitedJob returns the job train as of a time, which was admitted at 60 s, in queues with these limits.
func limitedJob(t *testing.T, local, cluster string, now int, change ...func(*kueue.Workload)) Job {
	t.Helper()
	lq, cq := labDoor(), labQueue()
	lq.Annotations = map[string]string{muster.MaxDurationAnnotation: local}
	cq.Annotations = map[string]string{muster.MaxDurationAnnotation: cluster}
	snapshot := Snapshot{LocalQueues: []kueue.LocalQueue{lq}, ClusterQueues: []kueue.ClusterQueue{cq},
		JobSets:   []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
		Workloads: []kueue.Workload{aWorkload("train", append(change, admitted(60))...)}}
	jobs := Jobs(&snapshot, at(now).Time)
	if len(jobs) != 1 {
		t.Fatalf("found %d jobs, want 1", len(jobs))
	}
	return jobs[0]
}

func TestARunningJobHasTheTimeUntilItsLimit(t *testing.T) {
	own := func(w *kueue.Workload) { w.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](600) }
	for name, test := range map[string]struct {
		job   Job
		limit *TimeLimit
		left  int64
	}{
		"without a limit": {job: limitedJob(t, "", "", 100)},
		"of its own": {limitedJob(t, "1h", "2h", 100, own), &TimeLimit{Seconds: 600,
			Source: "spec.maximumExecutionTimeSeconds of the Workload", EndsAt: at(660)}, 560},
		"of the LocalQueue": {limitedJob(t, "1h", "2h", 100), &TimeLimit{Seconds: 3600,
			Source: "muster.dev/max-duration of LocalQueue gpu", EndsAt: at(3660)}, 3560},
		"of the ClusterQueue": {limitedJob(t, "", "2h", 100), &TimeLimit{Seconds: 7200,
			Source: "muster.dev/max-duration of ClusterQueue lab", EndsAt: at(7260)}, 7160},
		"that it has reached": {limitedJob(t, "", "2h", 9000), &TimeLimit{Seconds: 7200,
			Source: "muster.dev/max-duration of ClusterQueue lab", EndsAt: at(7260)}, 0},
	} {
		if diff := cmp.Diff(test.limit, test.job.Limit); diff != "" {
			t.Errorf("%s: the limit differs (-want +got):\n%s", name, diff)
		}
		if got := ptr.Deref(test.job.LeftSeconds, -1); test.limit != nil && got != test.left {
			t.Errorf("%s: %d s are left, want %d", name, got, test.left)
		}
	}
}

// TestAJobHasTheTimeUntilItsOwnLimit: its own API stops it, or the kubelets do. What is reached first counts.
func TestAJobHasTheTimeUntilItsOwnLimit(t *testing.T) {
	own := func(limit string) func(*kueue.Workload) {
		return func(w *kueue.Workload) { w.Annotations = map[string]string{muster.JobLimitAnnotation: limit} }
	}
	for name, test := range map[string]struct {
		job  Job
		want TimeLimit
	}{
		"alone": {limitedJob(t, "", "", 100, own("10m")),
			TimeLimit{Seconds: 600, Source: "the job", EndsAt: at(660), Own: true}},
		"below that of its queue": {limitedJob(t, "1h", "", 100, own("10m")),
			TimeLimit{Seconds: 600, Source: "the job", EndsAt: at(660), Own: true}},
		"above that of its queue": {limitedJob(t, "1h", "", 100, own("2h")), TimeLimit{Seconds: 3600,
			Source: "muster.dev/max-duration of LocalQueue gpu", EndsAt: at(3660)}},
	} {
		if test.job.Limit == nil || *test.job.Limit != test.want {
			t.Errorf("%s: the limit is %+v, want %+v", name, test.job.Limit, test.want)
		}
	}
}

func TestAJobThatDoesNotRunHasNoTimeLeft(t *testing.T) {
	js, w := waitingJob("eval", 0, 5, "WaitingForQuota")
	w.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](600)
	evicted := aWorkload("train", func(w *kueue.Workload) { w.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](600) },
		admitted(60), with(kueue.WorkloadEvicted, metav1.ConditionTrue, "Preempted", "", 70))
	snapshot := Snapshot{JobSets: []jobset.JobSet{js, aJobSet("train", inQueue("gpu"))},
		Workloads: []kueue.Workload{w, evicted}}
	for _, job := range Jobs(&snapshot, at(100).Time) {
		if job.Limit != nil || job.LeftSeconds != nil {
			t.Errorf("the job %s, which is %s, has the limit %+v, want none", job.Name, job.State, job.Limit)
		}
	}
}

// TestAWarningShowsALimitThatTheReaderCannotSee: users of a namespace may not be allowed to read ClusterQueues.
func TestAWarningShowsALimitThatTheReaderCannotSee(t *testing.T) {
	warned := with(muster.TimeLimitNearCondition, metav1.ConditionTrue, muster.TimeLimitNearReason, "soon", 90)
	job := limitedJob(t, "", "", 100, warned)
	if job.Message != "soon" {
		t.Errorf("message = %q, want that of the warning", job.Message)
	}
	own := func(w *kueue.Workload) { w.Annotations = map[string]string{muster.JobLimitAnnotation: "1h"} }
	if job = limitedJob(t, "", "", 100, warned, own); job.Message != "soon" || job.Limit == nil {
		t.Errorf("message = %q and limit %+v, want the warning beside the job's own limit", job.Message, job.Limit)
	}
	if job = limitedJob(t, "", "2h", 100, warned); job.Message != "" {
		t.Errorf("message = %q, want none beside the time that is left", job.Message)
	}
}

// TestOnlyAPlausibleExpectedEndIsShown: nobody knows who wrote the annotation.
func TestOnlyAPlausibleExpectedEndIsShown(t *testing.T) {
	for text, want := range map[string]bool{
		"2025-06-01T16:00:00Z": true, "2025-06-01T16:00:00.5Z": true, "2025-06-01T18:00:00+02:00": true,
		"":                     false,
		"2025-06-01T14:00:10Z": false, // passed
		"2055-06-01T16:00:00Z": false, "9999-12-31T23:59:59Z": false, "2025-06-01": false, "soon": false,
		"2025-06-01T6:00:00Z": false, "2025-06-01T16:00:00,5Z": false, " 2025-06-01T16:00:00Z": false,
		"2025-06-01T16:00:00Z\x1b[31m": false, "2025-13-01T16:00:00Z": false, "1748793600": false,
	} {
		job := limitedJob(t, "", "", 100, func(w *kueue.Workload) {
			w.Annotations = map[string]string{muster.ExpectedEndAnnotation: text}
		})
		if got := job.ExpectedEnd != nil; got != want {
			t.Errorf("%q is shown as %v, shown: %t, want %t", text, job.ExpectedEnd, got, want)
		}
	}
}

// TestProgressGoesOnEvenlyUntilTheExpectedEnd: what was reported at 14:00 is shown as more later, and never as all.
func TestProgressGoesOnEvenlyUntilTheExpectedEnd(t *testing.T) {
	const none = -1
	for _, test := range []struct {
		reported, ends string
		now            int
		want           int64
	}{
		{"40% at 2025-06-01T14:00:00Z", "2025-06-01T14:10:00Z", 100, 50},
		{"40% at 2025-06-01T14:00:00Z", "2025-06-01T14:10:00Z", 0, 40},
		{"40% at 2025-06-01T14:00:00Z", "2025-06-01T14:10:00Z", 599, 99},
		{"100% at 2025-06-01T14:00:00Z", "2025-06-01T14:10:00Z", 60, 99},
		{"40% at 2025-06-01T14:00:00Z", "2025-06-01T14:10:00Z", 600, none}, // it should have ended
		{"40% at 2025-06-01T14:00:00Z", "", 100, none},
		{"40% at 2025-06-01T15:00:00Z", "2025-06-01T16:00:00Z", 100, none}, // reported in the future
		{"400% at 2025-06-01T14:00:00Z", "2025-06-01T14:10:00Z", 100, none},
		{"", "2025-06-01T14:10:00Z", 100, none},
	} {
		job := limitedJob(t, "", "", test.now, func(w *kueue.Workload) {
			w.Annotations = map[string]string{muster.ExpectedEndAnnotation: test.ends,
				muster.ReportedProgressAnnotation: test.reported}
		})
		if got := ptr.Deref(job.ProgressPercentage, none); got != test.want {
			t.Errorf("%q that ends %q is %d%% done after %d s, want %d", test.reported, test.ends, got, test.now, test.want)
		}
	}
}
