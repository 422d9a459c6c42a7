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
		"as many pods as run at once":           {newJob(3), 3, 0, ""},
		"no more than are to complete":          {newJob(5).completions(2), 2, 0, ""},
		"all of them if completions are open":   {newJob(5).withoutCompletions(), 5, 0, ""},
		"a Job of no pods asks for none":        {newJob(0), 0, 0, ""},
		"fewer will do":                         {newJob(5).annotated(least, "2"), 5, 2, ""},
		"all of them may be the least":          {newJob(5).annotated(least, "5"), 5, 5, ""},
		"what runs asks for what it asked for":  {newJob(5).annotated(least, "2").started(grant(3)), 5, 2, ""},
		"completions may follow":                {newJob(5).indexed().annotated(least, "2").annotated(syncs, "true"), 5, 2, ""},
		"they may be told not to":               {newJob(5).completions(7).annotated(syncs, "false"), 5, 0, ""},
		"a least of nothing is a mistake":       {newJob(5).annotated(least, "0"), 5, 0, `The annotation kueue.x-k8s.io/job-min-parallelism is "0": it must be a number from 1 to 5, the pods that the Job runs at once`},
		"one of more than all too":              {newJob(5).completions(3).annotated(least, "4"), 3, 0, `The annotation kueue.x-k8s.io/job-min-parallelism is "4": it must be a number from 1 to 3, the pods that the Job runs at once`},
		"one that is no number too":             {newJob(5).annotated(least, "half"), 5, 0, `The annotation kueue.x-k8s.io/job-min-parallelism is "half": it must be a number from 1 to 5, the pods that the Job runs at once`},
		"only equal completions can follow":     {newJob(5).indexed().completions(7).annotated(syncs, "true"), 5, 0, `The annotation kueue.x-k8s.io/job-completions-equal-parallelism is true: the Job must be Indexed and have as many completions as parallelism`},
		"and only those of an Indexed Job, too": {newJob(5).annotated(syncs, "true"), 5, 0, `The annotation kueue.x-k8s.io/job-completions-equal-parallelism is true: the Job must be Indexed and have as many completions as parallelism`},
	} {
		t.Run(name, func(t *testing.T) {
			d := describe(tc.job.job, jobs.Facts{})
			if d.PodSets[0].Name != "main" || d.PodSets[0].Count != tc.count || ptr.Deref(d.PodSets[0].MinCount, 0) != tc.minCount {
				t.Errorf("pod set %+v", d.PodSets[0])
			}
			switch {
			case tc.mistake == "" && d.Mistake != nil:
				t.Errorf("mistake %q", d.Mistake.Message)
			case tc.mistake != "" && (d.Mistake == nil || d.Mistake.Message != tc.mistake):
				t.Errorf("mistake %+v, want %q", d.Mistake, tc.mistake)
			}
		})
	}
}

func TestJobOfAnotherControllerIsForeign(t *testing.T) {
	for manager, want := range map[string]bool{"": false, "kubernetes.io/job-controller": false, "example.com/other": true} {
		b := newJob(1)
		if manager != "" {
			b.job.Spec.ManagedBy = ptr.To(manager)
		}
		if got := describe(b.job, jobs.Facts{}).Foreign; got != want {
			t.Errorf("%q: foreign %v", manager, got)
		}
	}
}

func TestCountIndexes(t *testing.T) {
	for text, want := range map[string]int32{"": 0, "0": 1, "1,3-5,7": 5, "0-9": 10, "8-12": 2, "12": 0, "x": 0, "1,x-3,4": 2} {
		if got := jobs.CountIndexes(text, 10); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestFailedIndexesAreNotWaitedFor(t *testing.T) {
	b := newJob(4).indexed().started(grant(4))
	b.job.Status.CompletedIndexes, b.job.Status.FailedIndexes = "0", ptr.To("2-3")
	if got := reclaimable(b.job); got != 3 {
		t.Errorf("%d are reclaimable, want 3", got)
	}
}
