package decisions

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/workload"
)

// TestAnAdmissionThatDoesNotFitIsRefused: it must not be retried for ever, which would hold quota that nobody uses.
func TestAnAdmissionThatDoesNotFitIsRefused(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked), admissiontest.NewClusterQueue("cq", "8"),
		admissiontest.NewLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	w.Before = admissiontest.Always(admissiontest.ErrTooLarge)
	d.work(t, 1)
	want := []engine.Event{engine.Refused{Key: d.decision.Key, UID: "a-uid", Serial: 1, Generation: 1,
		Message: "etcdserver: request is too large", At: admissiontest.Now}}
	if diff := cmp.Diff(want, d.reported); diff != "" {
		t.Errorf("reported to the engine (-want +got):\n%s", diff)
	}
}

// TestAWriteThatAlwaysFailsIsRefused: the API server answers each attempt with an internal error, and the Workload does
// not change, so no attempt took effect.
func TestAWriteThatAlwaysFailsIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		refused bool
	}{
		"an internal error":     {admissiontest.InternalError("something is wrong"), true},
		"a webhook":             {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"overload":              {apierrors.NewServiceUnavailable("overloaded"), false},
		"no answer":             {errors.New("connection refused"), false},
		"a timeout of the etcd": {apierrors.NewTimeoutError("no answer", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked), admissiontest.NewClusterQueue("cq", "8"),
				admissiontest.NewLocalQueue("q", "cq"))
			d := newSingleWriter(t, w)
			w.Before = admissiontest.Always(test.err)
			d.Take(d.decision)
			for range 1000 {
				d.Writer.Write(t.Context(), d.decision.Key)
			}
			var want []engine.Event
			if test.refused {
				want = []engine.Event{engine.Refused{Key: d.decision.Key, UID: "a-uid", Serial: 1, Generation: 1,
					Message: test.err.Error(), At: admissiontest.Now}}
			}
			if diff := cmp.Diff(want, d.reported); diff != "" {
				t.Errorf("reported to the engine (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFailuresOfOtherVersionsDoNotCount: a Workload that changes may be accepted the next time.
func TestFailuresOfOtherVersionsDoNotCount(t *testing.T) {
	w, d := runningWriter(t, engine.Decision{Evict: &engine.Eviction{Preemptor: engine.Key{Namespace: "ns", Name: "b"}}})
	w.Before = admissiontest.Always(admissiontest.InternalError("something is wrong"))
	a := w.Workload("a")
	d.Take(d.decision)
	for i := range int32(3 * refusedAfter) {
		d.Writer.Write(t.Context(), d.decision.Key)
		w.EditStatus(a, func() { a.Status.RequeueState = &kueue.RequeueState{Count: ptr.To(i)} })
	}
	if len(d.reported) != 0 {
		t.Errorf("reported %+v although the Workload changed after each attempt", d.reported)
	}
}

// TestAnEvictionThatDoesNotFitTakesTheQuotaAtOnce: whoever may annotate a Workload must not make it impossible to
// evict.
func TestAnEvictionThatDoesNotFitTakesTheQuotaAtOnce(t *testing.T) {
	for name, decision := range map[string]engine.Decision{
		"an eviction": {Evict: &engine.Eviction{Preemptor: engine.Key{Namespace: "ns", Name: "b"}}},
		"fewer pods":  {Resize: &engine.Resize{Admission: given(1), PodSet: "main", From: 2, To: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := runningWriter(t, decision)
			w.Before = admissiontest.Once(admissiontest.ErrTooLarge)
			d.work(t, 1)
			a := w.Workload("a")
			if workload.HoldsQuota(a) {
				t.Fatal("the Workload holds quota for ever")
			}
			want := []engine.Event{engine.Written{Key: d.decision.Key, UID: "a-uid", Serial: 7, Version: translate.VersionOf(a)}}
			if diff := cmp.Diff(want, d.reported); diff != "" {
				t.Errorf("reported to the engine (-want +got):\n%s", diff)
			}
			c := meta.FindStatusCondition(a.Status.Conditions, kueue.WorkloadQuotaReserved)
			if c == nil || c.Status != metav1.ConditionFalse || c.Message != workload.TooLargeMessage {
				t.Errorf("condition QuotaReserved = %+v, want False with %q", c, workload.TooLargeMessage)
			}
		})
	}
}

// TestOtherPlacesThatDoNotFitTakeNoQuota: the pods keep their places.
func TestOtherPlacesThatDoNotFitTakeNoQuota(t *testing.T) {
	for name, decision := range map[string]engine.Decision{
		"other places": {Replace: given(2)},
		"more pods":    {Resize: &engine.Resize{Admission: given(3), PodSet: "main", From: 2, To: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := runningWriter(t, decision)
			w.Before = admissiontest.Always(admissiontest.ErrTooLarge)
			d.work(t, 2)
			if !workload.HoldsQuota(w.Workload("a")) {
				t.Error("the Workload lost its quota")
			}
			want := []engine.Event{engine.Refused{Key: d.decision.Key, UID: "a-uid", Serial: 7,
				Message: admissiontest.ErrTooLarge.Error(), At: admissiontest.Now}}
			if diff := cmp.Diff(want, d.reported); diff != "" {
				t.Errorf("reported to the engine (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheEventOfARefusedAdmissionWaitsForTheWriteBudget: the evictions for the job may have used it up, and no other
// event says who refuses the job.
func TestTheEventOfARefusedAdmissionWaitsForTheWriteBudget(t *testing.T) {
	budget := NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now))
	for budget.mayRecordEvent() {
	}
	recorder := NewBoundedRecorder(events.NewFakeRecorder(1), budget)
	a := admissiontest.NewWorkload("a", 1, nil)
	a.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "u",
		Controller: ptr.To(true)}}
	(&JobEvents{Recorder: recorder}).Waits(a, reason.RefusedAdmission("a policy says no"))
	if len(recorder.late) != 1 {
		t.Error("the event was dropped, want it to wait")
	}
}

// TestAnEvictionInBriefIsAnEvent: its status cannot say more.
func TestAnEvictionInBriefIsAnEvent(t *testing.T) {
	runs := admissiontest.AdmittedWorkload("a")
	evicted := runs.DeepCopy()
	workload.Evict(evicted, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"},
		admissiontest.Now)
	got, is := changeOf(runs, workload.InBrief(runs, evicted))
	if want := (change{Kind: "Warning", Reason: "Evicted", Message: workload.TooLargeMessage}); !is || got != want {
		t.Errorf("change = %+v, want %+v", got, want)
	}
}

// TestATrialOfAnAdmissionWritesNothing: it is a dry run, whose outcome the engine is told.
func TestATrialOfAnAdmissionWritesNothing(t *testing.T) {
	key := engine.Key{Namespace: "ns", Name: "a"}
	forbidden := apierrors.NewForbidden(kueue.GroupVersion.WithResource("workloads").GroupResource(), "a",
		errors.New("a policy says no"))
	badRequest := apierrors.NewBadRequest("the webhook does not support dry run")
	refusedFor := func(err error) engine.Event {
		return engine.Refused{Key: key, UID: "a-uid", Serial: 1, Generation: 1, Message: err.Error(), At: admissiontest.Now}
	}
	for name, tc := range map[string]struct {
		answer error
		change func(*kueue.Workload)
		want   engine.Event
	}{
		"it would be accepted": {nil, nil, engine.Tried{Key: key, UID: "a-uid", Serial: 1}},
		"it would be refused":  {forbidden, nil, refusedFor(forbidden)},
		"it cannot be tried":   {badRequest, nil, refusedFor(badRequest)},
		"the Workload has changed": {nil, func(w *kueue.Workload) { w.Spec.Active = ptr.To(false) },
			engine.Failed{Key: key, UID: "a-uid", Serial: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked), admissiontest.NewClusterQueue("cq", "8"),
				admissiontest.NewLocalQueue("q", "cq"))
			d := newSingleWriter(t, w)
			d.decision.Admit, d.decision.Try = nil, d.decision.Admit
			if tc.change != nil {
				a := w.Workload("a")
				w.Edit(a, func() { tc.change(a) })
				d.client = w
			}
			w.Before = admissiontest.Always(tc.answer)
			d.work(t, 1)
			if diff := cmp.Diff([]engine.Event{tc.want}, d.reported); diff != "" {
				t.Errorf("reported to the engine (-want +got):\n%s", diff)
			}
			if held := w.Workload("a").Status.Admission; held != nil {
				t.Errorf("the Workload holds %+v, want nothing", held)
			}
		})
	}
}
