package batchjob

import (
	"testing"

	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestDescribe(t *testing.T) {
	const (
		least = kueue.JobMinParallelismAnnotation
		syncs = kueue.JobCompletionsEqualParallelismAnnotation
	)
	for name, tc := range map[string]struct {
		job      builder
		count    int32
		minCount int32
		mistake  string
	}{
		"parallelism":                  {newJob(3), 3, 0, ""},
		"fewer completions":            {newJob(5).completions(2), 2, 0, ""},
		"no completions":               {newJob(5).withoutCompletions(), 5, 0, ""},
		"parallelism 0":                {newJob(0), 0, 0, ""},
		"minimum":                      {newJob(5).annotated(least, "2"), 5, 2, ""},
		"minimum equal to parallelism": {newJob(5).annotated(least, "5"), 5, 5, ""},
		"minimum, started with fewer":  {newJob(5).annotated(least, "2").started(grant(3)), 5, 2, ""},
		"minimum, synced completions": {newJob(5).indexed().annotated(least, "2").annotated(syncs,
			"true"), 5, 2, ""},
		"synced completions off": {newJob(5).completions(7).annotated(syncs, "false"), 5, 0, ""},
		"minimum 0": {newJob(5).annotated(least, "0"), 5, 0,
			`The annotation kueue.x-k8s.io/job-min-parallelism is "0": it must be a number from 1 to 5, the pods that the Job runs at once`},
		"minimum above completions": {newJob(5).completions(3).annotated(least, "4"), 3, 0,
			`The annotation kueue.x-k8s.io/job-min-parallelism is "4": it must be a number from 1 to 3, the pods that the Job runs at once`},
		"minimum that is no number": {newJob(5).annotated(least, "half"), 5, 0,
			`The annotation kueue.x-k8s.io/job-min-parallelism is "half": it must be a number from 1 to 5, the pods that the Job runs at once`},
		"synced completions of another number": {newJob(5).indexed().completions(7).annotated(syncs, "true"), 5, 0,
			`The annotation kueue.x-k8s.io/job-completions-equal-parallelism is true: the Job must be Indexed and have as many completions as parallelism`},
		"synced completions of a Job that is not Indexed": {newJob(5).annotated(syncs, "true"), 5, 0,
			`The annotation kueue.x-k8s.io/job-completions-equal-parallelism is true: the Job must be Indexed and have as many completions as parallelism`},
	} {
		t.Run(name, func(t *testing.T) {
			d := describe(tc.job.job, jobs.Facts{})
			if d.PodSets[0].Name != "main" || d.PodSets[0].Count != tc.count ||
				ptr.Deref(d.PodSets[0].MinCount, 0) != tc.minCount {
				t.Errorf("pod set = %+v, want main with the count %d and the minimum %d (0 for none)", d.PodSets[0],
					tc.count, tc.minCount)
			}
			switch {
			case tc.mistake == "" && d.Mistake != nil:
				t.Errorf("mistake = %q, want none", d.Mistake.Message)
			case tc.mistake != "" && (d.Mistake == nil || d.Mistake.Message != tc.mistake):
				t.Errorf("mistake = %+v, want %q", d.Mistake, tc.mistake)
			}
		})
	}
}

func TestJobOfAnotherControllerIsForeign(t *testing.T) {
	for manager, want := range map[string]bool{"": false, "kubernetes.io/job-controller": false,
		"example.com/other": true} {
		b := newJob(1)
		if manager != "" {
			b.job.Spec.ManagedBy = ptr.To(manager)
		}
		if got := describe(b.job, jobs.Facts{}).Foreign; got != want {
			t.Errorf("managedBy %q: Foreign = %v, want %v", manager, got, want)
		}
	}
}

func TestCountIndexes(t *testing.T) {
	for text, want := range map[string]int32{"": 0, "0": 1, "1,3-5,7": 5, "0-9": 10, "8-12": 2, "12": 0,
		"x": 0, "1,x-3,4": 2} {
		if got := jobs.CountIndexes(text, 10); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestFailedIndexesAreNotWaitedFor(t *testing.T) {
	b := newJob(4).indexed().started(grant(4))
	b.job.Status.CompletedIndexes, b.job.Status.FailedIndexes = "0", ptr.To("2-3")
	if got := reclaimable(b.job); got != 3 {
		t.Errorf("reclaimable = %d, want 3: one completed and two failed indexes", got)
	}
}
