package trainingjob

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// unschedulable returns a pod that kube-scheduler finds no node for.
func unschedulable(index int) jobstest.Pod {
	p := pod(index)
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Message: "0/2 nodes are available."}}
	return p
}

// planAt plans for a job with these pods, of which three were admitted, and returns the job with its new status.
func planAt(t *testing.T, at time.Time, job jobBuilder, facts jobs.Facts,
	pods []client.Object) (jobs.Plan, jobBuilder) {
	t.Helper()
	p := jobstest.CheckedPlan(t, func(seen jobs.Seen[*breezeml.TrainingJob]) jobs.Plan { return plan(settings, seen) },
		jobs.Seen[*breezeml.TrainingJob]{Job: job.TrainingJob, Facts: facts, Admission: admitted(3), Children: pods, Now: at})
	return p, withStatus(p, job)
}

// startedWith returns a job of from least to 3 workers that has been running for a while with these pods.
func startedWith(t *testing.T, least int32, pods []client.Object) jobBuilder {
	t.Helper()
	job := newJob(least, 3)
	_, job = planAt(t, now, job, jobs.Facts{}, nil)
	_, job = planAt(t, now, job, jobs.Facts{}, pods)
	return job
}

// TestJobGoesOnWithoutWorkersThatCannotBePlaced: it stops only if fewer than its minimum run.
func TestJobGoesOnWithoutWorkersThatCannotBePlaced(t *testing.T) {
	late := now.Add(settings.PendingTimeout)
	pulling := pod(2)
	pulling.Spec.NodeName, pulling.Status.Phase = "n", corev1.PodPending
	for name, tc := range map[string]struct {
		least   int32
		pods    []client.Object
		stage   string
		deleted []string
	}{
		"the last is unschedulable": {2, of(pod(0).Running(), pod(1).Running(), unschedulable(2)), "Running 2",
			[]string{"delete Pod job-worker-2"}},
		"the first is unschedulable": {2, of(unschedulable(0), pod(1).Running(), pod(2).Running()), "Running 2",
			[]string{"delete Pod job-worker-0"}},
		"two are unschedulable": {1, of(unschedulable(0), pod(1).Running(), unschedulable(2)), "Running 1",
			[]string{"delete Pod job-worker-0", "delete Pod job-worker-2"}},
		"one does not start on its node": {2, of(pod(0).Running(), pod(1).Running(), pulling), "Running 2",
			[]string{"delete Pod job-worker-2"}},
		"one does not end": {2, of(pod(0).Running(), pod(1).Running(), pod(2).Running().Terminating()),
			"Running 2", nil},
		"one has succeeded": {2, of(pod(0).Ended(0), pod(1).Running(), unschedulable(2)), "Running 2",
			[]string{"delete Pod job-worker-2"}},
		"fewer than the minimum run": {3, of(pod(0).Running(), pod(1).Running(), unschedulable(2)),
			"RequeueCooldown 0", []string{"delete Pod job-worker-0", "delete Pod job-worker-1", "delete Pod job-worker-2"}},
		"none runs, though the minimum is one": {1, of(unschedulable(0), unschedulable(1), unschedulable(2)),
			"RequeueCooldown 0", []string{"delete Pod job-worker-0", "delete Pod job-worker-1", "delete Pod job-worker-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			job := startedWith(t, tc.least, tc.pods)
			if d := describe(job.TrainingJob, jobs.Facts{}); d.Wanted != 0 {
				t.Errorf("before the time is over the job wants %d workers, want no limit", d.Wanted)
			}
			p, job := planAt(t, late, job, jobs.Facts{}, tc.pods)
			same(t, "stage", tc.stage, stageAndSize(job))
			var deleted []string
			for _, w := range writes(p) {
				if strings.HasPrefix(w, "delete Pod") {
					deleted = append(deleted, w)
				}
			}
			same(t, "deleted pods", tc.deleted, deleted)
			if !p.StatusFirst {
				t.Error("the status, without which the pods would be created again, is not written first")
			}
			if tc.stage == "RequeueCooldown 0" {
				return
			}
			d := describe(job.TrainingJob, jobs.Facts{})
			if d.Wanted != job.Status.CurrentSize || d.PodSets[0].Count != 3 {
				t.Errorf("the job wants %d workers of a pod set of %d, want %d of 3", d.Wanted, d.PodSets[0].Count,
					job.Status.CurrentSize)
			}
			if e := p.Events[0]; e.Reason != breezeml.SizeLimitedReason ||
				!strings.Contains(e.Message, "instead of 3: Pods have been pending for more than 5m0s, ") {
				t.Errorf("events %v, want the reason for the size", events(p))
			}
			if len(p.Events) != 1 {
				t.Errorf("events %v, want a single one", events(p))
			}
		})
	}
}

// TestSizeThatFailedIsNotTriedAgainAtOnce: the pause doubles with each failure, up to the cooldown, is over at once
// when nodes gain room, and is short again after the larger size has run.
func TestSizeThatFailedIsNotTriedAgainAtOnce(t *testing.T) {
	stuck := of(pod(0).Running(), pod(1).Running(), unschedulable(2))
	two := of(pod(0).Running(), pod(1).Running())
	job := startedWith(t, 2, stuck)
	at := now
	for _, pause := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute,
		80 * time.Minute, 160 * time.Minute, 3 * time.Hour, 3 * time.Hour} {
		at = at.Add(settings.PendingTimeout)
		var p jobs.Plan
		p, job = planAt(t, at, job, jobs.Facts{}, stuck)
		same(t, "stage", "Running 2", stageAndSize(job))
		if until := at.Add(pause); !p.Due.Equal(until) || !job.Status.SizeLimit.Until.Time.Equal(until) {
			t.Fatalf("the job is due at %s with the limit %+v, want until %s", p.Due, job.Status.SizeLimit, until)
		}
		// as if the operator was restarted
		p, job = planAt(t, at.Add(pause-time.Second), job, jobs.Facts{NodesGained: at}, two)
		if made := podsIn(p); len(made) > 0 || limitOf(job.TrainingJob) != 2 {
			t.Fatalf("before the pause is over, pods are written: %v, limit %+v; want none and the limit of 2", writes(p),
				job.Status.SizeLimit)
		}
		at = at.Add(pause)
		p, job = planAt(t, at, job, jobs.Facts{}, two)
		if made := podsIn(p); len(made) != 1 || describe(job.TrainingJob, jobs.Facts{}).Wanted != 0 {
			t.Fatalf("after the pause the pods %v are written, limit %+v; want one and no limit", writes(p),
				job.Status.SizeLimit)
		}
		_, job = planAt(t, at, job, jobs.Facts{}, stuck)
	}
	_, job = planAt(t, at.Add(settings.PendingTimeout), job, jobs.Facts{}, stuck)
	p, job := planAt(t, at.Add(settings.PendingTimeout+time.Minute), job,
		jobs.Facts{NodesGained: at.Add(settings.PendingTimeout + 59*time.Second)}, two)
	if made := podsIn(p); len(made) != 1 {
		t.Fatalf("after a node came the pods %v are written, want one", writes(p))
	}
	_, job = planAt(t, at, job, jobs.Facts{}, of(pod(0).Running(), pod(1).Running(), pod(2).Running()))
	if job.Status.SizeLimit != nil {
		t.Errorf("once all run the limit is %+v, want it forgotten", job.Status.SizeLimit)
	}
}

// TestLimitOfTheSizeKeepsToTheBounds: a minimum that was raised meanwhile goes before the limit, a suspension ends it,
// and an admission during the pause starts with what ran before.
func TestLimitOfTheSizeKeepsToTheBounds(t *testing.T) {
	stuck := of(pod(0).Running(), pod(1).Running(), unschedulable(2))
	_, limited := planAt(t, now.Add(settings.PendingTimeout), startedWith(t, 2, stuck), jobs.Facts{}, stuck)
	soon := now.Add(settings.PendingTimeout + time.Minute)

	stopped := withStatus(checkedPlan(t, soon, limited.TrainingJob, stopping, nil), limited)
	same(t, "stage without quota", "Waiting 0", stageAndSize(stopped))
	if d := describe(stopped.TrainingJob, jobs.Facts{}); d.Wanted != 0 {
		t.Errorf("while it waits it wants %d workers, want no limit", d.Wanted)
	}
	_, again := planAt(t, soon, stopped, jobs.Facts{}, nil)
	same(t, "stage when admitted again during the pause", "Running 2", stageAndSize(again))

	raised := jobBuilder{stopped.DeepCopy()}
	raised.Spec.MinSize = ptr.To[int32](3)
	_, raised = planAt(t, soon, raised, jobs.Facts{}, nil)
	same(t, "stage with a higher minimum", "Running 3", stageAndSize(raised))

	suspended := withStatus(checkedPlan(t, soon, limited.suspended(true).TrainingJob, admitted(3), nil),
		limited.suspended(true))
	_, resumed := planAt(t, soon, suspended.suspended(false), jobs.Facts{}, nil)
	same(t, "stage after a suspension", "Running 3", stageAndSize(resumed))
}
