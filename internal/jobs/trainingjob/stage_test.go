package trainingjob

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestJobWithWrongSizesWaitsUntilTheyAreCorrected(t *testing.T) {
	job := newJob(2, 4)
	job = then(see(t, now, job.TrainingJob, admitted(4), nil), job)
	job.Spec.MinSize = ptr.To[int32](5)
	p := see(t, now, job.TrainingJob, admitted(4), of(pod(0).Running(), pod(1)))
	same(t, "its pods", []string{"delete Pod job-worker-0", "delete Pod job-worker-1"}, writes(p))
	same(t, "it tells", []string{"Warning WrongConfiguration: minSize, 5, is above maxSize, 4: lower the one or raise the other"}, events(p))
	job = then(p, job)
	same(t, "then it is", "WrongConfiguration 0", stands(job))
	if p := see(t, now, job.TrainingJob, waiting, nil); p.Status != nil || len(p.Events)+len(p.Writes) > 0 {
		t.Errorf("at rest it plans %+v", p)
	}
	job.Spec.MinSize = ptr.To[int32](1)
	later := now.Add(time.Hour)
	if d := describe(job.TrainingJob, jobs.Facts{}); d.Paused || !d.QueuedTime.IsZero() {
		t.Errorf("mended, it asks %+v", d)
	}
	job = then(see(t, later, job.TrainingJob, waiting, nil), job)
	same(t, "mended, it is", "Waiting 0", stands(job))
	if s := &job.Status; !s.QueuedTime.Time.Equal(later) || !s.SubmitTime.Time.Equal(later) {
		t.Errorf("mended, it says that it was submitted at %s and queues since %s", s.SubmitTime, s.QueuedTime)
	}
}

func TestMissingCommandForTheAgentIsAWrongConfiguration(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.InjectLattice = true
	job.Spec.ReplicaSpecs.Template.Spec.Containers[1].Command = nil
	p := see(t, now, job.TrainingJob, waiting, nil)
	same(t, "it is", "WrongConfiguration 0", stands(then(p, job)))
	if len(p.Events) != 1 || !describe(job.TrainingJob, jobs.Facts{}).Paused {
		t.Errorf("it tells %v", events(p))
	}
}

func TestPreemptedJobKeepsItsQueuedTime(t *testing.T) {
	job := newJob(1, 2)
	job = then(see(t, now, job.TrainingJob, admitted(2), nil), job)
	job = then(see(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
	queued := job.Status.QueuedTime.DeepCopy()
	p := see(t, now, job.TrainingJob, stopping, of(pod(0).Running(), pod(1).Running().Terminating()))
	same(t, "its pods", []string{"delete Pod job-worker-0"}, writes(p))
	job = then(p, job)
	same(t, "it is", "Waiting 0", stands(job))
	same(t, "conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created.", "Running=False TrainingJobWaiting: TrainingJob job has no workers."}, conditions(job))
	later := now.Add(time.Hour)
	job = then(see(t, later, job.TrainingJob, admitted(1), nil), job)
	same(t, "again", "Running 1", stands(job))
	if s := &job.Status; !s.QueuedTime.Equal(queued) || !s.LastExecTime.Time.Equal(later) || !s.ExecStatus.StartTime.Time.Equal(now) {
		t.Errorf("times are %+v", s)
	}
}

func TestSuspendedJobHasNoPods(t *testing.T) {
	job := newJob(1, 1)
	job = then(see(t, now, job.TrainingJob, admitted(1), nil), job)
	p := see(t, now, job.suspended(true).TrainingJob, admitted(1), of(pod(0).Running()))
	same(t, "its pods", []string{"delete Pod job-worker-0"}, writes(p))
	job = then(p, job.suspended(true))
	same(t, "it is", "Waiting 0", stands(job))
	if job.Status.ExecStatus.StartTime != nil || !isTrue(job.TrainingJob, breezeml.JobSuspended) {
		t.Errorf("its status is %+v", job.Status)
	}
	later := now.Add(time.Hour)
	job = then(see(t, later, job.suspended(false).TrainingJob, waiting, nil), job.suspended(false))
	if isTrue(job.TrainingJob, breezeml.JobSuspended) || !job.Status.QueuedTime.Time.Equal(later) {
		t.Errorf("resumed, its status is %+v", job.Status)
	}
}

func TestDeactivatedJobIsCancelled(t *testing.T) {
	job := newJob(1, 1)
	off := waiting
	off.Deactivated = true
	job = then(see(t, now, job.TrainingJob, off, nil), job)
	same(t, "it is", "Cancelled 0", stands(job))
	job = then(see(t, now, job.TrainingJob, admitted(1), nil), job)
	same(t, "activated, it is", "Running 1", stands(job))
}

func TestJobWithPendingPodsIsRequeued(t *testing.T) {
	job := newJob(1, 2)
	job = then(see(t, now, job.TrainingJob, admitted(2), nil), job)
	stuck := of(pod(0).Running(), pod(1))
	p := see(t, now, job.TrainingJob, admitted(2), stuck)
	if !p.Due.Equal(now.Add(5*time.Minute)) || p.StatusCanWait {
		t.Errorf("it is due at %s, its status can wait: %v", p.Due, p.StatusCanWait)
	}
	job = then(p, job)
	if !job.Status.RequeueTime.Time.Equal(now.Add(5 * time.Minute)) {
		t.Errorf("requeueTime is %s", job.Status.RequeueTime)
	}
	if resized := then(see(t, now.Add(time.Minute), job.TrainingJob, admitted(1), stuck), job); resized.Status.RequeueTime != nil {
		t.Errorf("resized, requeueTime is %s", resized.Status.RequeueTime)
	}
	if runs := then(see(t, now.Add(time.Minute), job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job); runs.Status.RequeueTime != nil {
		t.Errorf("once all run, requeueTime is %s", runs.Status.RequeueTime)
	}
	later := now.Add(5 * time.Minute)
	same(t, "as long as one is missing", "Running 2", stands(then(see(t, later, job.TrainingJob, admitted(2), of(pod(1))), job)))
	p = see(t, later, job.TrainingJob, admitted(2), stuck)
	same(t, "its pods", []string{"delete Pod job-worker-0", "delete Pod job-worker-1"}, writes(p))
	same(t, "it tells", []string{"Warning RequeueCooldown: Pods have been pending for more than 5m0s, job-worker-1 among them: the job gives up its quota and is queued again at 2026-03-01 15:05:00 UTC. The events of that pod say why"}, events(p))
	job = then(p, job)
	same(t, "it is", "RequeueCooldown 0", stands(job))
	end := later.Add(3 * time.Hour)
	if !p.StatusFirst || !job.Status.CooldownTime.Time.Equal(end) || job.Status.RequeueTime != nil {
		t.Errorf("its status is %+v", job.Status)
	}
	if p := see(t, end.Add(-time.Second), job.TrainingJob, waiting, nil); !p.Due.Equal(end) || !p.StatusCanWait || stands(then(p, job)) != "RequeueCooldown 0" {
		t.Errorf("meanwhile it plans %+v", p)
	}
	job = then(see(t, end, job.TrainingJob, waiting, nil), job)
	same(t, "then it is", "Waiting 0", stands(job))
	if s := &job.Status; !s.QueuedTime.Time.Equal(end) || s.CooldownTime != nil || !s.SubmitTime.Equal(&job.CreationTimestamp) {
		t.Errorf("its status is %+v", s)
	}
}
