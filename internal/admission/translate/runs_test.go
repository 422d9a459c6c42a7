package translate

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/workload"
)

// endedAfter returns the Workload as it is once it has finished after this time.
func endedAfter(w *kueue.Workload, took time.Duration, reason string) *kueue.Workload {
	out := w.DeepCopy()
	workload.SetCondition(out, kueue.WorkloadFinished, metav1.ConditionTrue, reason, "", admissiontest.Now.Add(took))
	return out
}

// runsIn returns how long the runs took of which the events tell.
func runsIn(events []engine.Event) (out []time.Duration) {
	for _, ev := range events {
		if ended, is := ev.(engine.RunEnded); is {
			out = append(out, ended.Took)
		}
	}
	return out
}

// TestWhichRunsAreLearnedFrom: those that came to their end, and no others.
func TestWhichRunsAreLearnedFrom(t *testing.T) {
	const succeeded, failed = kueue.WorkloadFinishedReasonSucceeded, kueue.WorkloadFinishedReasonFailed
	evicted := func(w *kueue.Workload, reason string) *kueue.Workload {
		out := w.DeepCopy()
		workload.Evict(out, workload.Eviction{Reason: reason}, admissiontest.Now.Add(time.Hour))
		return out
	}
	limited := admissiontest.AdmittedWorkload("w")
	limited.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](3600)
	for name, tc := range map[string]struct {
		before, after *kueue.Workload
		want          []time.Duration
	}{
		"it succeeded": {admissiontest.AdmittedWorkload("w"),
			endedAfter(admissiontest.AdmittedWorkload("w"), time.Hour, succeeded), []time.Duration{time.Hour}},
		"it failed": {admissiontest.AdmittedWorkload("w"),
			endedAfter(admissiontest.AdmittedWorkload("w"), time.Hour, failed), nil},
		"it failed before its limit": {limited, endedAfter(limited, time.Minute, failed), nil},
		"it failed at its limit":     {limited, endedAfter(limited, time.Hour, failed), []time.Duration{time.Hour}},
		"it was stopped at its limit": {limited, evicted(limited, "DeactivatedDueToMaximumExecutionTimeExceeded"),
			[]time.Duration{time.Hour}},
		"it was preempted": {limited, evicted(limited, kueue.WorkloadEvictedByPreemption), nil},
		"it ended as it left": {limited,
			endedAfter(evicted(limited, kueue.WorkloadEvictedByPreemption), 2*time.Hour, succeeded), nil},
		"its job does not fit": {limited, endedAfter(limited, time.Hour, kueue.WorkloadFinishedReasonOutOfSync), nil},
		"it never ran": {admissiontest.ReservedWorkload("w"),
			endedAfter(admissiontest.ReservedWorkload("w"), time.Hour, succeeded), nil},
		"its end is before its start": {limited, endedAfter(limited, -time.Hour, succeeded), nil},
		"it runs on":                  {limited, limited, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTestTranslator()
			tr.Changed(tc.before, admissiontest.Now)
			events := tr.Changed(tc.after, admissiontest.Now)
			if diff := cmp.Diff(tc.want, runsIn(events)); diff != "" {
				t.Fatalf("runs (-want +got):\n%s", diff)
			}
			if len(tc.want) > 0 && events[0].(engine.RunEnded).Time.Kind != tr.Workload(tc.before).Time.Kind {
				t.Errorf("the run is of the kind %q, want that of the Workload", events[0].(engine.RunEnded).Time.Kind)
			}
			if again := append(tr.Changed(tc.after, admissiontest.Now), tr.Deleted(tc.after)...); len(runsIn(again)) > 0 {
				t.Errorf("a later event tells of the run again: %+v", again)
			}
		})
	}
}

func TestADeletedWorkloadIsNotLearnedFrom(t *testing.T) {
	tr := newTestTranslator()
	w := admissiontest.AdmittedWorkload("w")
	tr.Changed(w, admissiontest.Now)
	if events := tr.Deleted(w); len(runsIn(events)) > 0 {
		t.Errorf("events of a Workload that was deleted while it ran: %+v", events)
	}
}

// TestAnotherWorkloadOfTheNameHasItsOwnRun: the watch may skip the deletion of the first.
func TestAnotherWorkloadOfTheNameHasItsOwnRun(t *testing.T) {
	tr := newTestTranslator()
	tr.Changed(admissiontest.AdmittedWorkload("w"), admissiontest.Now)
	other := endedAfter(admissiontest.AdmittedWorkload("w"), time.Hour, kueue.WorkloadFinishedReasonSucceeded)
	other.UID = "other"
	if events := tr.Changed(other, admissiontest.Now); len(runsIn(events)) > 0 {
		t.Errorf("events %+v, want no run of the first Workload", events)
	}
}

// TestRunsBeforeTheStartAreLearnedOnceInOrder: a Workload that ends while the operator starts is told of by Changed.
func TestRunsBeforeTheStartAreLearnedOnceInOrder(t *testing.T) {
	const succeeded = kueue.WorkloadFinishedReasonSucceeded
	var objects []client.Object
	for i, minutes := range []int{3, 1, 2} {
		objects = append(objects, endedAfter(admissiontest.AdmittedWorkload(fmt.Sprint("w", i)),
			time.Duration(minutes)*time.Minute, succeeded))
	}
	running := admissiontest.AdmittedWorkload("running")
	objects = append(objects, admissiontest.Namespace.DeepCopy(), objects[0], running,
		endedAfter(running, time.Hour, succeeded))
	tr := newTestTranslator()
	before := runsIn(tr.EndedBefore(objects))
	if diff := cmp.Diff([]time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}, before); diff != "" {
		t.Errorf("runs before the start (-want +got):\n%s", diff)
	}
	var after []engine.Event
	for _, o := range objects {
		after = append(after, tr.Changed(o, admissiontest.Now)...)
	}
	if diff := cmp.Diff([]time.Duration{time.Hour}, runsIn(after)); diff != "" {
		t.Errorf("runs since the start (-want +got):\n%s", diff)
	}
}
