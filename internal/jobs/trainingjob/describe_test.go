package trainingjob

import (
	"math"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

func TestSizes(t *testing.T) {
	for name, tc := range map[string]struct {
		least, most *int32
		want        sizes
		wrong       bool
	}{
		"none":                  {nil, nil, sizes{1, 1}, false},
		"minSize":               {ptr.To[int32](3), nil, sizes{3, 3}, false},
		"maxSize":               {nil, ptr.To[int32](4), sizes{1, 4}, false},
		"both":                  {ptr.To[int32](2), ptr.To[int32](4), sizes{2, 4}, false},
		"minSize above maxSize": {ptr.To[int32](5), ptr.To[int32](4), sizes{5, 4}, true},
		"zero":                  {ptr.To[int32](0), ptr.To[int32](4), sizes{0, 4}, true},
		"maxSize zero":          {nil, ptr.To[int32](0), sizes{1, 0}, true},
		"negative":              {ptr.To[int32](-2), ptr.To[int32](-1), sizes{-2, -1}, true},
		"minSize negative":      {ptr.To[int32](-2), nil, sizes{-2, 1}, true},
		"the largest":           {nil, ptr.To[int32](10000), sizes{1, 10000}, false},
		"too many":              {nil, ptr.To[int32](10001), sizes{1, 10001}, true},
		"too many at least":     {ptr.To[int32](math.MaxInt32), nil, sizes{math.MaxInt32, math.MaxInt32}, true},
	} {
		job := newJob(1, 1)
		job.Spec.MinSize, job.Spec.MaxSize = tc.least, tc.most
		if got, wrong := sizesOf(job.TrainingJob), mistakeOf(job.TrainingJob); got != tc.want || (wrong != "") != tc.wrong {
			t.Errorf("%s: sizes %+v, mistake %q, want %+v and a mistake: %v", name, got, wrong, tc.want, tc.wrong)
		}
		d := describe(job.TrainingJob, jobs.Facts{})
		if d.Paused != tc.wrong || (len(d.PodSets) == 0) != tc.wrong {
			t.Errorf("%s: description %+v, want it paused without pod sets: %v", name, d, tc.wrong)
		}
	}
}

// TestNoJobIsPlannedBeyondItsLargestSize: a job that was stored before the API limited its size takes no more memory
// than the largest job does, whatever its status says.
func TestNoJobIsPlannedBeyondItsLargestSize(t *testing.T) {
	job := newJob(1, math.MaxInt32)
	job.Status.Stage, job.Status.CurrentSize = breezeml.StageRunning, math.MaxInt32
	got := withStatus(checkedPlan(t, now, job.TrainingJob, admitted(math.MaxInt32), nil), job)
	if got := stageAndSize(got); got != string(breezeml.StageWrongConfiguration)+" 0" {
		t.Errorf("it is %s, want %s", got, breezeml.StageWrongConfiguration)
	}
}

// TestAJobThatRunsWithNoWorkersHasNotSucceeded: only an edited status, or one that was restored in part, says so.
func TestAJobThatRunsWithNoWorkersHasNotSucceeded(t *testing.T) {
	for _, size := range []int32{0, -1} {
		job := newJob(1, 2)
		job.Status.Stage, job.Status.CurrentSize = breezeml.StageRunning, size
		if got := stageAndSize(withStatus(checkedPlan(t, now, job.TrainingJob, waiting, nil),
			job)); got != string(breezeml.StageWaiting)+" 0" {
			t.Errorf("with the size %d in its status it is %s, want %s", size, got, breezeml.StageWaiting)
		}
	}
}

func TestDescribe(t *testing.T) {
	job := newJob(2, 4)
	d := describe(job.TrainingJob, jobs.Facts{})
	ps := d.PodSets[0]
	if ps.Name != "worker" || ps.Count != 4 || *ps.MinCount != 2 ||
		ps.Template.Annotations[muster.MinReplicasAnnotation] != "2" ||
		ps.Template.Annotations[muster.MaxReplicasAnnotation] != "4" {
		t.Errorf("pod set = %+v, want from 2 to 4 workers", ps)
	}
	if d.Queue != "" || *d.Priority != 0 || d.Foreign || d.Paused || !d.QueuedTime.Equal(job.CreationTimestamp.Time) {
		t.Errorf("description = %+v, want the defaults and the time of the creation", d)
	}
	job.Spec.RunPolicy.SchedulingPolicy = &breezeml.SchedulingPolicy{Queue: "q", PriorityClass: "high"}
	job.Spec.RunPolicy.ManagedBy = ptr.To("example.com/other")
	if d := describe(job.TrainingJob, jobs.Facts{}); d.Queue != "q" || d.Priority != nil ||
		d.PriorityClass != "high" || !d.Foreign {
		t.Errorf("with a scheduling policy: description %+v", d)
	}
	if d.Limit != 0 {
		t.Errorf("without a deadline the limit is %s, want none", d.Limit)
	}
	job.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](60)
	if d := describe(job.TrainingJob, jobs.Facts{}); d.Limit != time.Minute {
		t.Errorf("with a deadline of a minute the limit is %s", d.Limit)
	}
	job.Spec.Priority = -1
	job.Spec.RunPolicy.ManagedBy = ptr.To(breezeml.ControllerName)
	if d := describe(job.TrainingJob, jobs.Facts{}); *d.Priority != -1 || d.PriorityClass != "" || d.Foreign {
		t.Errorf("with a priority of its own: description %+v", d)
	}
	if ps := describe(newJob(3, 3).TrainingJob, jobs.Facts{}).PodSets[0]; *ps.MinCount != 3 ||
		ps.Template.Annotations[muster.MinReplicasAnnotation] != "3" {
		t.Errorf("with one size: pod set %+v, want a minimum of 3", ps)
	}
	for name, paused := range map[string]jobBuilder{
		"suspended":    newJob(1, 1).suspended(true),
		"cooling down": {&breezeml.TrainingJob{Status: breezeml.TrainingJobStatus{Stage: breezeml.StageRequeueCooldown}}},
	} {
		if !describe(paused.TrainingJob, jobs.Facts{}).Paused {
			t.Errorf("%s: the description is not paused", name)
		}
	}
}
