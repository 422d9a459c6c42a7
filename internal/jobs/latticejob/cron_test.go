package latticejob

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
)

// scheduled is ns/job that runs every five minutes, made half an hour ago; it is 12:02 and has been told of.
func scheduled() *scene {
	return newScene().stands(lattice.Running, "m", 1).with(func(s *scene) {
		s.seen.Now = now.Add(2 * time.Minute)
		s.seen.Job.CreationTimestamp = metav1.NewTime(now.Add(-30 * time.Minute))
		s.seen.Job.Spec.Schedule = "*/5 * * * *"
	})
}

// run adds one of the time so many minutes after 12:00, in the phase.
func run(minutes int, phase lattice.JobPhase) func(*scene) {
	return func(s *scene) {
		r := runOf(s.seen.Job, now.Add(time.Duration(minutes)*time.Minute))
		r.Status.Phase = phase
		s.seen.Children = append([]client.Object{r}, s.seen.Children...) // in no order of theirs
	}
}

func last(minutes int) func(*scene) {
	return func(s *scene) {
		s.seen.Job.Status.LastScheduleTime = ptr.To(metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute)))
	}
}

func policy(p lattice.ConcurrencyPolicy) func(*scene) {
	return func(s *scene) { s.seen.Job.Spec.ConcurrencyPolicy = p }
}

func suspended(s *scene) { s.seen.Job.Spec.Suspend = ptr.To(true) }

func deadline(seconds int64) func(*scene) {
	return func(s *scene) { s.seen.Job.Spec.StartingDeadlineSeconds = &seconds }
}

// named is the name of the run of so many minutes after 12:00.
func named(minutes int) string { return fmt.Sprintf("job-%d", now.Unix()/60+int64(minutes)) }

func TestLifeOfAJobWithASchedule(t *testing.T) {
	const noon, before = "2026-03-01T12:00:00Z", "2026-03-01T11:55:00Z"
	active := func(n int, last string) string {
		return fmt.Sprintf("Cron active: %d job(s), last scheduled: %s", n, last)
	}
	for name, test := range map[string]struct {
		scene           *scene
		message, writes string
		events          string
		last            string
	}{
		"it is new": {scheduled().stands("", "",
			0).with(func(s *scene) { s.seen.Job.CreationTimestamp = metav1.NewTime(s.seen.Now) }),
			"Cron job active", "", "JobSubmitted", ""},
		"its time has not come": {scheduled().with(func(s *scene) { s.seen.Job.CreationTimestamp = metav1.NewTime(now) }),
			active(0, "never"), "", "", ""},
		"its time has come": {scheduled().with(last(-5)), active(1, noon), "create  " + named(0), "", noon},
		"of those that were missed only the last is made up for": {scheduled(), active(1, noon),
			"create  " + named(0), "", noon},
		"one that is there is not begun again, told or not": {scheduled().with(last(-5)).with(run(0, lattice.Running)),
			active(1, noon), "", "", noon},
		"one that is gone is not begun again": {scheduled().with(last(0)), active(0, noon), "", "", noon},
		"one that is gone is not begun again in its deadline": {scheduled().with(last(0)).with(deadline(600)),
			active(0, noon), "", "", noon},
		"an earlier one goes on beside it": {scheduled().with(run(-5, lattice.Running)), active(2, noon),
			"create  " + named(0), "", noon},
		"an earlier one goes on first": {scheduled().with(run(-5, "")).with(policy(lattice.ForbidConcurrent)),
			active(1, before), "", "", before},
		"an earlier one has ended": {scheduled().with(run(-5, lattice.Failed)).with(policy(lattice.ForbidConcurrent)),
			active(1, noon), "create  " + named(0), "", noon},
		"an earlier one is replaced": {scheduled().with(run(-5, lattice.Running)).with(policy(lattice.ReplaceConcurrent)),
			active(1, noon), "create  " + named(0) + ", delete  " + named(-5), "", noon},
		"it is suspended": {scheduled().with(run(-5, lattice.Running)).with(suspended),
			active(1, before) + ", suspended", "", "", before},
		"it is too late": {scheduled().with(last(-5)).with(deadline(60)), active(0, before), "", "", before},
		"it is never too late": {scheduled().with(last(-5)).with(deadline(math.MaxInt64)), active(1, noon),
			"create  " + named(0), "", noon},
		"it is late, but not too late": {scheduled().with(last(-5)).with(deadline(120)), active(1, noon),
			"create  " + named(0), "", noon},
		"of those that ended some are kept": {scheduled().with(run(-20, lattice.Succeeded)).with(run(-15, lattice.Succeeded)).
			with(run(-10, lattice.Succeeded)).with(run(-5, lattice.Succeeded)).
			with(run(-25, lattice.Failed)).with(run(0, lattice.Failed)), active(0, noon),
			"delete  " + named(-25) + ", delete  " + named(-20), "", noon},
		"a negative number to keep, of a job that is older than the rule": {scheduled().with(last(0)).
			with(run(0, lattice.Failed)).with(func(s *scene) { s.seen.Job.Spec.FailedJobsHistoryLimit = ptr.To[int32](-1) }),
			active(0, noon), "delete  " + named(0), "", noon},
		"it was changed to what is no schedule": {scheduled().with(last(0)).
			with(func(s *scene) { s.seen.Job.Spec.Schedule = "noon" }),
			"schedule 'noon': expected exactly 5 fields, found 1: [noon]", "", "CompileFailed", noon},
		"what it needs comes later": {scheduled().with(last(0)).with(needSecret).with(callService),
			active(0, noon), "", "", noon},
	} {
		t.Run(name, func(t *testing.T) {
			plan := test.scene.plan(t)
			status := plan.Status.(*lattice.LatticeJob).Status
			var last string
			if status.LastScheduleTime != nil {
				last = stamp(status.LastScheduleTime.Time)
			}
			if status.Phase != lattice.Running || status.Message != test.message ||
				ptr.Deref(status.ObservedGeneration, 0) != 1 || last != test.last {
				t.Errorf("status %+v", status)
			}
			if got := writes(plan); got != test.writes {
				t.Errorf("writes %q, want %q", got, test.writes)
			}
			if got := events(plan); got != test.events {
				t.Errorf("events %q, want %q", got, test.events)
			}
			wantsDue := test.scene.seen.Job.Spec.Suspend == nil && test.scene.seen.Job.Spec.Schedule != "noon"
			if want := now.Add(5 * time.Minute); plan.Due.Equal(want) != wantsDue {
				t.Errorf("it is looked at again at %s", plan.Due)
			}
			if plan.Progress.Active || plan.Progress.Outcome != nil {
				t.Errorf("progress %+v", plan.Progress)
			}
		})
	}
}

// TestARunIsAJobOfItsOwn: as its owner says, but for the schedule.
func TestARunIsAJobOfItsOwn(t *testing.T) {
	s := scheduled().with(func(s *scene) {
		s.seen.Job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"}
		inOneRack(s)
		s.seen.Job.Annotations[kueue.AdmissionGatedByAnnotation] = "example.com/budget"
		s.seen.Job.Annotations[muster.ExpectedDurationAnnotation] = "2h"
		suspended(s)
		s.seen.Job.Spec.FailedJobsHistoryLimit = ptr.To[int32](7)
	})
	got := runOf(s.seen.Job, now)
	want := s.seen.Job.DeepCopy()
	want.Spec.CronSpec = lattice.CronSpec{}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("its spec (-want +got):\n%s", diff)
	}
	wantMeta := metav1.ObjectMeta{Name: named(0), Namespace: "ns",
		Labels: map[string]string{"kueue.x-k8s.io/queue-name": "q", "lattice.dev/cron-job": "job"},
		Annotations: map[string]string{"lattice.dev/scheduled-at": "2026-03-01T12:00:00Z",
			"kueue.x-k8s.io/podset-required-topology": "rack", "kueue.x-k8s.io/admission-gated-by": "example.com/budget",
			"muster.dev/expected-duration": "2h"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "lattice.dev/v1alpha1", Kind: "LatticeJob", Name: "job",
			UID: "u", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}}
	if diff := cmp.Diff(wantMeta, got.ObjectMeta); diff != "" {
		t.Errorf("its metadata (-want +got):\n%s", diff)
	}
}

// TestAScheduleThatNeverRunsFails: when it or its job cannot be read at all. Nothing is made of it.
func TestAScheduleThatNeverRunsFails(t *testing.T) {
	for want, change := range map[string]func(*scene){
		"schedule '61 * * * *'": func(s *scene) { s.seen.Job.Spec.Schedule = "61 * * * *" },
		"job has no tasks":      func(s *scene) { s.seen.Job.Spec.Tasks = nil },
		"would exceed 63 characters": func(s *scene) {
			s.seen.Job.Name = strings.Repeat("x", 55) // for its runs it is too long
		},
	} {
		plan := scheduled().stands("", "", 0).with(change).plan(t)
		status := plan.Status.(*lattice.LatticeJob).Status
		if status.Phase != lattice.Failed || !strings.HasPrefix(status.Message, "Failed to compile job: ") ||
			!strings.Contains(status.Message, want) {
			t.Errorf("status %+v, want Failed with %q", status, want)
		}
		if len(plan.Writes) > 0 || !plan.Due.IsZero() {
			t.Errorf("writes %q, due %s", writes(plan), plan.Due)
		}
	}
}
