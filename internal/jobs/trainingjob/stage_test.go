package trainingjob

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestJobWithWrongSizesWaitsUntilTheyAreCorrected(t *testing.T) {
	job := newJob(2, 4)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(4), nil), job)
	job.Spec.MinSize = ptr.To[int32](5)
	p := checkedPlan(t, now, job.TrainingJob, admitted(4), of(pod(0).Running(), pod(1)))
	same(t, "writes", []string{"delete Pod job-worker-0", "delete Pod job-worker-1"}, writes(p))
	same(t, "events",
		[]string{"Warning WrongConfiguration: minSize, 5, is above maxSize, 4: lower the one or raise the other"}, events(p))
	job = withStatus(p, job)
	same(t, "stage", "WrongConfiguration 0", stageAndSize(job))
	if p := checkedPlan(t, now, job.TrainingJob, waiting, nil); p.Status != nil || len(p.Events)+len(p.Writes) > 0 {
		t.Errorf("the next plan is %+v, want no writes and no events", p)
	}
	job.Spec.MinSize = ptr.To[int32](1)
	later := now.Add(time.Hour)
	if d := describe(job.TrainingJob, jobs.Facts{}); d.Paused || !d.QueuedTime.IsZero() {
		t.Errorf("once corrected: description %+v, want it not paused, without a queued time", d)
	}
	job = withStatus(checkedPlan(t, later, job.TrainingJob, waiting, nil), job)
	same(t, "stage once corrected", "Waiting 0", stageAndSize(job))
	if s := &job.Status; !s.QueuedTime.Time.Equal(later) || !s.SubmitTime.Time.Equal(later) {
		t.Errorf("once corrected: submitTime = %s, queuedTime = %s, want the time of the correction", s.SubmitTime, s.QueuedTime)
	}
}

func TestMissingCommandForTheAgentIsAWrongConfiguration(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.InjectLattice = true
	job.Spec.ReplicaSpecs.Template.Spec.Containers[1].Command = nil
	p := checkedPlan(t, now, job.TrainingJob, waiting, nil)
	same(t, "stage", "WrongConfiguration 0", stageAndSize(withStatus(p, job)))
	if len(p.Events) != 1 || !describe(job.TrainingJob, jobs.Facts{}).Paused {
		t.Errorf("events = %v, want one; the description must be paused", events(p))
	}
}

func TestPreemptedJobKeepsItsQueuedTime(t *testing.T) {
	job := newJob(1, 2)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), nil), job)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
	queued := job.Status.QueuedTime.DeepCopy()
	p := checkedPlan(t, now, job.TrainingJob, stopping, of(pod(0).Running(), pod(1).Running().Terminating()))
	same(t, "writes", []string{"delete Pod job-worker-0"}, writes(p))
	job = withStatus(p, job)
	same(t, "stage", "Waiting 0", stageAndSize(job))
	if d := describe(job.TrainingJob, jobs.Facts{}); !d.QueuedTime.Equal(queued.Time) {
		t.Errorf("it waits since %s, want its queuedTime, %s", d.QueuedTime, queued)
	}
	same(t, "conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created.",
		"Running=False TrainingJobWaiting: TrainingJob job has no workers."}, conditions(job))
	later := now.Add(time.Hour)
	job = withStatus(checkedPlan(t, later, job.TrainingJob, admitted(1), nil), job)
	same(t, "stage once admitted again", "Running 1", stageAndSize(job))
	if s := &job.Status; !s.QueuedTime.Equal(queued) || !s.LastExecTime.Time.Equal(later) ||
		!s.ExecStatus.StartTime.Time.Equal(now) {
		t.Errorf("status = %+v, want the former queuedTime and startTime and a new lastExecTime", s)
	}
}

func TestSuspendedJobHasNoPods(t *testing.T) {
	job := newJob(1, 1)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(1), nil), job)
	p := checkedPlan(t, now, job.suspended(true).TrainingJob, admitted(1), of(pod(0).Running()))
	same(t, "writes", []string{"delete Pod job-worker-0"}, writes(p))
	job = withStatus(p, job.suspended(true))
	same(t, "stage", "Waiting 0", stageAndSize(job))
	if job.Status.ExecStatus.StartTime != nil || !isTrue(job.TrainingJob, breezeml.JobSuspended) {
		t.Errorf("status = %+v, want it suspended without a startTime", job.Status)
	}
	later := now.Add(time.Hour)
	job = withStatus(checkedPlan(t, later, job.suspended(false).TrainingJob, waiting, nil), job.suspended(false))
	if isTrue(job.TrainingJob, breezeml.JobSuspended) || !job.Status.QueuedTime.Time.Equal(later) {
		t.Errorf("status once resumed = %+v, want a new queuedTime and no suspension", job.Status)
	}
}

func TestDeactivatedJobIsCancelled(t *testing.T) {
	job := newJob(1, 1)
	deactivated := waiting
	deactivated.Deactivated = true
	job = withStatus(checkedPlan(t, now, job.TrainingJob, deactivated, nil), job)
	same(t, "stage", "Cancelled 0", stageAndSize(job))
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(1), nil), job)
	same(t, "stage once activated", "Running 1", stageAndSize(job))
}

func TestJobWithPendingPodsIsRequeued(t *testing.T) {
	job := newJob(2, 2)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), nil), job)
	stuck := pod(1)
	stuck.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason:  corev1.PodReasonUnschedulable,
		Message: "0/2 nodes are available: 2 node(s) had volume node affinity conflict."}}
	pending := of(pod(0).Running(), stuck)
	p := checkedPlan(t, now, job.TrainingJob, admitted(2), pending)
	if !p.Due.Equal(now.Add(5*time.Minute)) || p.StatusCanWait {
		t.Errorf("due at %s, status can wait: %v; want due in 5 minutes and false", p.Due, p.StatusCanWait)
	}
	job = withStatus(p, job)
	if !job.Status.RequeueTime.Time.Equal(now.Add(5 * time.Minute)) {
		t.Errorf("requeueTime = %s, want in 5 minutes", job.Status.RequeueTime)
	}
	if resized := withStatus(checkedPlan(t, now.Add(time.Minute), job.TrainingJob, admitted(1), pending),
		job); resized.Status.RequeueTime != nil {
		t.Errorf("requeueTime once resized = %s, want none", resized.Status.RequeueTime)
	}
	if running := withStatus(checkedPlan(t, now.Add(time.Minute), job.TrainingJob, admitted(2),
		of(pod(0).Running(), pod(1).Running())), job); running.Status.RequeueTime != nil {
		t.Errorf("requeueTime once all pods run = %s, want none", running.Status.RequeueTime)
	}
	later := now.Add(5 * time.Minute)
	same(t, "stage while a pod is missing", "Running 2",
		stageAndSize(withStatus(checkedPlan(t, later, job.TrainingJob, admitted(2), of(pod(1))), job)))
	p = checkedPlan(t, later, job.TrainingJob, admitted(2), pending)
	same(t, "writes", []string{"delete Pod job-worker-0", "delete Pod job-worker-1"}, writes(p))
	same(t, "events",
		[]string{"Warning RequeueCooldown: Pods have been pending for more than 5m0s, job-worker-1 among them: 0/2 nodes are available: 2 node(s) had volume node affinity conflict. The job gives up its quota and is queued again at 2026-03-01 15:05:00 UTC"}, events(p))
	job = withStatus(p, job)
	if c := condition(job.TrainingJob, breezeml.JobRunning); c == nil || c.Status != corev1.ConditionFalse ||
		!c.LastTransitionTime.Time.Equal(later) || !strings.HasSuffix(c.Message, "volume node affinity conflict.") {
		t.Errorf("condition Running = %+v, want it False since now, with what kube-scheduler said: the pod and its events are gone before the cooldown ends", c)
	}
	same(t, "stage", "RequeueCooldown 0", stageAndSize(job))
	end := later.Add(3 * time.Hour)
	if !p.StatusFirst || !job.Status.CooldownTime.Time.Equal(end) || job.Status.RequeueTime != nil {
		t.Errorf("status first: %v, status %+v; want true and a cooldown of 3 hours", p.StatusFirst, job.Status)
	}
	if p := checkedPlan(t, end.Add(-time.Second), job.TrainingJob, waiting, nil); !p.Due.Equal(end) || !p.StatusCanWait ||
		stageAndSize(withStatus(p, job)) != "RequeueCooldown 0" {
		t.Errorf("the plan during the cooldown is %+v, want it due at its end", p)
	}
	job = withStatus(checkedPlan(t, end, job.TrainingJob, waiting, nil), job)
	same(t, "stage", "Waiting 0", stageAndSize(job))
	if s := &job.Status; !s.QueuedTime.Time.Equal(end) || s.CooldownTime != nil ||
		!s.SubmitTime.Equal(&job.CreationTimestamp) {
		t.Errorf("status after the cooldown = %+v, want a new queuedTime and no cooldownTime", s)
	}
}
