package write

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestTemporaryErrorsAreNoWarnings: only errors that a user or an administrator has to correct are recorded as events.
func TestTemporaryErrorsAreNoWarnings(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"exhausted quota":                  {forbidden, 1},
		"invalid object":                   {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "c", nil), 1},
		"too large for etcd":               {errTooLarge, 1},
		"too large a request":              {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), 1},
		"overloaded API server":            {unavailable, 0},
		"conflict with another controller": {conflict, 0},
		"timeout":                          {context.DeadlineExceeded, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newExecutorTest(t)
			b.fail["create c"] = tc.err
			if err := b.run(t, Batch{Writes: []Write{Create(child("c")).OrWarn("CreationFailed")}}); err == nil {
				t.Fatal("no error")
			}
			if len(b.events.events) != tc.want {
				t.Errorf("events = %v, want %d", b.events.events, tc.want)
			}
		})
	}
}

// TestRefusedChangeIsAWarning: a policy of the cluster may refuse that a job is started, stopped or resized.
func TestRefusedChangeIsAWarning(t *testing.T) {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w"}}
	for name, tc := range map[string]struct {
		of   client.Object
		want []string
	}{
		"of a job": {child("c"), []string{"Warning ChangeRefused: configmaps \"c\" is forbidden: exceeded quota: 100% of it"}},
		"of a Workload, which has its own report": {w, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newExecutorTest(t)
			b.fail["change "+tc.of.GetName()] = forbidden
			changed := tc.of.DeepCopyObject().(client.Object)
			changed.SetLabels(map[string]string{"changed": "true"})
			if err := b.run(t, Batch{Writes: []Write{Change(tc.of, changed)}}); err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, b.events.events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEventOfAWriteIsRecordedOnSuccess, not if the write fails.
func TestEventOfAWriteIsRecordedOnSuccess(t *testing.T) {
	b := newExecutorTest(t)
	b.fail["create c"] = conflict
	plan := Batch{Writes: []Write{Create(child("c")).WithEvent(Warning("Paused", "by its queue"))}}
	if err := b.run(t, plan); err == nil || len(b.events.events) > 0 {
		t.Fatalf("error %v, events %v, want an error and no events", err, b.events.events)
	}
	b.fail = nil
	if err := b.run(t, plan); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Warning Paused: by its queue"}, b.events.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestStatusDoesNotReportFailedWrites: the part of the status that reports the effect of a write is reverted if that
// write fails or comes after the status. The rest of the status and the events are written whatever else fails.
func TestStatusDoesNotReportFailedWrites(t *testing.T) {
	unavailable := errors.New("unavailable")
	for name, tc := range map[string]struct {
		fails       string
		statusFirst bool
		late        bool
		reported    []batchv1.JobConditionType
	}{
		"no failure":       {"", false, false, []batchv1.JobConditionType{"Counted", "Made"}},
		"the write failed": {"create reported", false, false, []batchv1.JobConditionType{"Counted"}},
		"another write failed": {"create other", false, false,
			[]batchv1.JobConditionType{"Counted", "Made"}},
		"status first, then the write":             {"", true, false, []batchv1.JobConditionType{"Counted"}},
		"status first, the write among the others": {"", true, true, []batchv1.JobConditionType{"Counted"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newExecutorTest(t)
			if tc.fails != "" {
				b.fail[tc.fails] = unavailable
			}
			status := b.job.DeepCopy()
			status.Status.Conditions = []batchv1.JobCondition{{Type: "Counted"}, {Type: "Made"}}
			create := Create(child("reported")).OrRevert(func(status client.Object) {
				s := &status.(*batchv1.Job).Status
				s.Conditions = s.Conditions[:1]
			})
			plan := Batch{First: []Write{create}, Writes: []Write{Create(child("other"))}, Status: status,
				StatusFirst: tc.statusFirst, Events: []Event{Normal("Counted", "one")}}
			if tc.late {
				plan.First, plan.Writes = nil, append(plan.Writes, create)
			}
			if err := b.run(t, plan); (err != nil) != (tc.fails != "") {
				t.Errorf("error %v, want one: %v", err, tc.fails != "")
			}
			var now batchv1.Job
			if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(b.job), &now); err != nil {
				t.Fatal(err)
			}
			var reported []batchv1.JobConditionType
			for _, c := range now.Status.Conditions {
				reported = append(reported, c.Type)
			}
			if diff := cmp.Diff(tc.reported, reported); diff != "" {
				t.Errorf("conditions of the status (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"Normal Counted: one"}, b.events.events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if len(status.Status.Conditions) != 2 {
				t.Error("Run changed the status of the plan")
			}
		})
	}
}

// TestEventsAreNeverFormatsAndNeverTooLong: a message may contain %, and is cut to the 1,024 bytes that the API allows,
// between two characters.
func TestEventsAreNeverFormatsAndNeverTooLong(t *testing.T) {
	b := newExecutorTest(t)
	long := strings.Repeat("é", 600) // 1,200 bytes
	if err := b.run(t, Batch{Events: []Event{{Reason: "A", Message: "100%d of %s"}, Warning("B", "x"+long),
		Warning("C", long)}}); err != nil {
		t.Fatal(err)
	}
	if got := b.events.events[0]; got != "Normal A: 100%d of %s" {
		t.Errorf("event %q, want it unformatted", got)
	}
	for _, event := range b.events.events[1:] {
		note := strings.SplitN(event, ": ", 2)[1]
		if len(note) > 1024 || len(note) < 1020 || !utf8.ValidString(note) || !strings.HasSuffix(note, "é…") {
			t.Errorf("the note has %d bytes and ends in %q, want 1020 to 1024 and whole characters with an ellipsis", len(note),
				note[len(note)-10:])
		}
	}
}
