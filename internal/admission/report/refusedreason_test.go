package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/reason"
)

// TestAReasonThatDoesNotFitIsAnEvent: it is not retried for ever, and the job says it all the same.
func TestAReasonThatDoesNotFitIsAnEvent(t *testing.T) {
	a := admissiontest.NewWorkload("a", 1, nil)
	a.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "u",
		Controller: ptr.To(true)}}
	w := admissiontest.NewWorld(t, a)
	w.Before = admissiontest.Always(admissiontest.ErrTooLarge)
	recorder, budget := events.NewFakeRecorder(10),
		decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now))
	p := NewPendingWriter(w, clocktesting.NewFakePassiveClock(admissiontest.Now), budget)
	p.Events = &decisions.JobEvents{Recorder: decisions.NewBoundedRecorder(recorder, budget)}
	key := engine.Key{Namespace: "ns", Name: "a"}
	p.Note(engine.Decision{Key: key, UID: "a-uid", Why: reason.RefusedAdmission("etcdserver: request is too large")})
	p.Write(t.Context(), key)
	if len(p.reasons) != 0 || p.Queue.NumRequeues(key) != 0 {
		t.Errorf("the reason is to be written again: %v", p.reasons)
	}
	close(recorder.Events)
	var got []string
	for line := range recorder.Events {
		got = append(got, line)
	}
	want := []string{"Warning Inadmissible " + reason.RefusedAdmission("etcdserver: request is too large").Message()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestARefusedAdmissionIsOneEvent: the job of a Workload whose admission the API server refuses is told so once,
// however often the reason is written, and again after it waited for something else.
func TestARefusedAdmissionIsOneEvent(t *testing.T) {
	a := admissiontest.NewWorkload("a", 1, nil)
	a.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "u",
		Controller: ptr.To(true)}}
	w := admissiontest.NewWorld(t, a)
	recorder, budget := events.NewFakeRecorder(10),
		decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now))
	p := NewPendingWriter(w, clocktesting.NewFakePassiveClock(admissiontest.Now), budget)
	p.Events = &decisions.JobEvents{Recorder: decisions.NewBoundedRecorder(recorder, budget)}
	key := engine.Key{Namespace: "ns", Name: "a"}
	told := func(when string, why reason.Reason, want ...string) {
		t.Helper()
		p.Note(engine.Decision{Key: key, UID: "a-uid", Why: why})
		p.Write(t.Context(), key)
		var got []string
		for len(recorder.Events) > 0 {
			got = append(got, <-recorder.Events)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", when, diff)
		}
	}
	no, never := reason.RefusedAdmission("a policy says no"), reason.RefusedAdmission("a policy says never")
	told("it is refused", no, "Warning Inadmissible "+no.Message())
	told("it is refused again", no)
	told("it is refused for something else", never)
	told("it waits for quota", reason.Reason{Code: reason.WaitingForQuota, Detail: "quota is short"})
	told("it is refused then", no, "Warning Inadmissible "+no.Message())
}
