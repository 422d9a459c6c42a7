package trainingjob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// TestEndedWorkersCountThoughTheJobIsStopped: the end of workers may be observed at the same time as the loss of the
// admission.
func TestEndedWorkersCountThoughTheJobIsStopped(t *testing.T) {
	wrong := func(b jobBuilder) jobBuilder {
		out := jobBuilder{b.DeepCopy()}
		out.Spec.MinSize = ptr.To[int32](5)
		return out
	}
	unchanged := func(b jobBuilder) jobBuilder { return b }
	for name, tc := range map[string]struct {
		stop  func(jobBuilder) jobBuilder
		grant jobs.Admission
	}{
		"evicted":       {unchanged, stopping},
		"deactivated":   {unchanged, jobs.Admission{Grant: jobs.Waiting, Deactivated: true}},
		"suspended":     {func(b jobBuilder) jobBuilder { return b.suspended(true) }, admitted(2)},
		"invalid sizes": {wrong, admitted(2)},
	} {
		t.Run(name, func(t *testing.T) {
			job := withStatus(checkedPlan(t, now, newJob(1, 2).TrainingJob, admitted(2), nil), newJob(1, 2))
			job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
			p := checkedPlan(t, now, tc.stop(job).TrainingJob, tc.grant, of(pod(0).Ended(0), pod(1).Ended(0)))
			if o := outcomeOf(withStatus(p, job).TrainingJob); o == nil || !o.Succeeded {
				t.Errorf("with all workers succeeded: outcome %+v, stage %s, want success", o, stageAndSize(withStatus(p, job)))
			}
			p = checkedPlan(t, now, tc.stop(job).TrainingJob, tc.grant, of(pod(0).Ended(3), pod(1).Running()))
			if o := outcomeOf(withStatus(p, job).TrainingJob); o == nil || o.Succeeded {
				t.Errorf("with a failed worker: outcome %+v, stage %s, want failure", o, stageAndSize(withStatus(p, job)))
			}
			p = checkedPlan(t, now, tc.stop(job).TrainingJob, tc.grant, of(pod(0).Ended(0), pod(1).Running()))
			same(t, "writes with a running worker", []string{"delete Pod job-worker-0", "delete Pod job-worker-1"}, writes(p))
			if o := outcomeOf(withStatus(p, job).TrainingJob); o != nil {
				t.Errorf("with a running worker: outcome %+v, want none", o)
			}
		})
	}
}

// TestPodsOfAnEndedJobAreNotWaitedFor: pods that still run or terminate do not make an ended job unready.
func TestPodsOfAnEndedJobAreNotWaitedFor(t *testing.T) {
	for _, policy := range []breezeml.CleanPodPolicy{breezeml.CleanPodNone, breezeml.CleanPodAll} {
		job := newJob(2, 2).cleans(policy)
		job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), nil), job)
		p := checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Ended(1), pod(1).Running()))
		after := checkedPlan(t, now, withStatus(p, job).TrainingJob, admitted(2),
			of(pod(0).Ended(1), pod(1).Running().Terminating()))
		for when, p := range map[string]jobs.Plan{"at the end": p, "after it": after} {
			if !p.Progress.Ready {
				t.Errorf("cleanPodPolicy %s: %s the progress is not ready: %+v", policy, when, p.Progress)
			}
		}
	}
}

// TestCorrectedJobIsTreatedAsNew: a job whose sizes were corrected has a new start time, which its deadline counts
// from.
func TestCorrectedJobIsTreatedAsNew(t *testing.T) {
	job := newJob(1, 2)
	job.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](60)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), nil), job)
	job.Spec.MinSize = ptr.To[int32](5)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), nil), job)
	later := now.Add(time.Hour)
	if o := outcomeOf(withStatus(checkedPlan(t, later, job.TrainingJob, waiting, nil), job).TrainingJob); o != nil {
		t.Errorf("before it is corrected: outcome %+v, want none", o)
	}
	job.Spec.MinSize = ptr.To[int32](1)
	job = withStatus(checkedPlan(t, later, job.TrainingJob, waiting, nil), job)
	job = withStatus(checkedPlan(t, later, job.TrainingJob, admitted(2), nil), job)
	same(t, "stage once corrected", "Running 2", stageAndSize(job))
	if s := &job.Status; !s.ExecStatus.StartTime.Time.Equal(later) {
		t.Errorf("submitTime = %s, startTime = %s, want it started when it was corrected", s.SubmitTime,
			s.ExecStatus.StartTime)
	}
}

// TestStatusSaysWhatIsRefused: the condition Running says why no worker runs, until one does.
func TestStatusSaysWhatIsRefused(t *testing.T) {
	job := withStatus(checkedPlan(t, now, newJob(1, 2).TrainingJob, admitted(2), nil), newJob(1, 2))
	refused := jobs.Seen[*breezeml.TrainingJob]{Job: job.TrainingJob, Admission: admitted(2), Now: now,
		RefusedObjects: jobs.RefusedObjects{Objects: 2, Since: now, What: "Its Services cannot be created",
			Why: "exceeded quota"}}
	job = withStatus(plan(settings, refused), job)
	if c := condition(job.TrainingJob, breezeml.JobRunning); c == nil || c.Status != corev1.ConditionFalse ||
		c.Reason != muster.RefusedReason ||
		c.Message != "Its Services cannot be created: exceeded quota" {
		t.Errorf("condition Running = %+v, want False with what is refused", c)
	}
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
	if c := condition(job.TrainingJob, breezeml.JobRunning); c == nil || c.Status != corev1.ConditionTrue {
		t.Errorf("condition Running with running workers = %+v, want True", c)
	}
}
