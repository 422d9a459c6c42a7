package trainingjob

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
)

// TestEndedWorkersCountThoughTheJobIsStopped: the end of workers and the loss of the admission may be observed at the
// same time.
func TestEndedWorkersCountThoughTheJobIsStopped(t *testing.T) {
	wrong := func(b jobBuilder) jobBuilder {
		out := jobBuilder{b.DeepCopy()}
		out.Spec.MinSize = ptr.To[int32](5)
		return out
	}
	as := func(b jobBuilder) jobBuilder { return b }
	for what, test := range map[string]struct {
		stop  func(jobBuilder) jobBuilder
		grant jobs.Admission
	}{
		"its place is needed":    {as, stopping},
		"it is deactivated":      {as, jobs.Admission{Grant: jobs.Waiting, Deactivated: true}},
		"it is suspended":        {func(b jobBuilder) jobBuilder { return b.suspended(true) }, admitted(2)},
		"its sizes become wrong": {wrong, admitted(2)},
	} {
		t.Run(what, func(t *testing.T) {
			job := then(see(t, now, newJob(1, 2).TrainingJob, admitted(2), nil), newJob(1, 2))
			job = then(see(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
			p := see(t, now, test.stop(job).TrainingJob, test.grant, of(pod(0).Ended(0), pod(1).Ended(0)))
			if o := outcome(then(p, job).TrainingJob); o == nil || !o.Succeeded {
				t.Errorf("with all workers done it ends %+v, and is %s", o, stands(then(p, job)))
			}
			p = see(t, now, test.stop(job).TrainingJob, test.grant, of(pod(0).Ended(3), pod(1).Running()))
			if o := outcome(then(p, job).TrainingJob); o == nil || o.Succeeded {
				t.Errorf("with a worker that has failed it ends %+v, and is %s", o, stands(then(p, job)))
			}
			p = see(t, now, test.stop(job).TrainingJob, test.grant, of(pod(0).Ended(0), pod(1).Running()))
			same(t, "with one that runs", []string{"delete Pod job-worker-0", "delete Pod job-worker-1"}, writes(p))
			if o := outcome(then(p, job).TrainingJob); o != nil {
				t.Errorf("with one that runs it ends %+v", o)
			}
		})
	}
}

// TestPodsOfAnEndedJobAreNotWaitedFor: those that still run or are terminating do not make it unready.
func TestPodsOfAnEndedJobAreNotWaitedFor(t *testing.T) {
	for _, policy := range []breezeml.CleanPodPolicy{breezeml.CleanPodNone, breezeml.CleanPodAll} {
		job := newJob(2, 2).cleans(policy)
		job = then(see(t, now, job.TrainingJob, admitted(2), nil), job)
		p := see(t, now, job.TrainingJob, admitted(2), of(pod(0).Ended(1), pod(1).Running()))
		after := see(t, now, then(p, job).TrainingJob, admitted(2), of(pod(0).Ended(1), pod(1).Running().Terminating()))
		for when, p := range map[string]jobs.Plan{"at the end": p, "after it": after} {
			if !p.Progress.Ready {
				t.Errorf("cleanPodPolicy %s: %s its queue is told that pods are to recover: %+v", policy, when, p.Progress)
			}
		}
	}
}

// TestCorrectedJobIsTreatedAsNew: its submit time is when it was corrected, and its start time is reset.
func TestCorrectedJobIsTreatedAsNew(t *testing.T) {
	job := newJob(1, 2)
	job.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](60)
	job = then(see(t, now, job.TrainingJob, admitted(2), nil), job)
	job.Spec.MinSize = ptr.To[int32](5)
	job = then(see(t, now, job.TrainingJob, admitted(2), nil), job)
	later := now.Add(time.Hour)
	if o := outcome(then(see(t, later, job.TrainingJob, waiting, nil), job).TrainingJob); o != nil {
		t.Errorf("while it waits to be mended it ends %+v", o)
	}
	job.Spec.MinSize = ptr.To[int32](1)
	job = then(see(t, later, job.TrainingJob, waiting, nil), job)
	job = then(see(t, later, job.TrainingJob, admitted(2), nil), job)
	same(t, "mended, it is", "Running 2", stands(job))
	if s := &job.Status; !s.ExecStatus.StartTime.Time.Equal(later) {
		t.Errorf("submitted at %s, it started at %s", s.SubmitTime, s.ExecStatus.StartTime)
	}
}
