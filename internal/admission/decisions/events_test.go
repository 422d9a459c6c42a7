package decisions

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/metrics/metricstest"
	"github.com/musterhq/muster/internal/workload"
)

func TestDecisionsAreRecordedAsEventsOnTheJob(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	budget := NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now))
	recorded := &JobEvents{NewBoundedRecorder(recorder, budget)}
	waits := admissiontest.NewWorkload("w", 1, nil)
	waits.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "u",
		Controller: ptr.To(true)}}
	fresh := waits.DeepCopy()
	workload.SetCondition(waits, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, "WaitingForQuota", "",
		admissiontest.Now)
	runs := waits.DeepCopy()
	admit(runs, &engine.Admission{ClusterQueue: "cq"}, nil, admissiontest.Now)
	evicted := runs.DeepCopy()
	workload.Evict(evicted, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"},
		admissiontest.Now)

	recorded.StatusChanged(fresh, runs) // it was never reported to wait
	recorded.StatusChanged(waits, runs)
	recorded.StatusChanged(runs, evicted)
	recorded.StatusChanged(evicted, evicted)
	bare := runs.DeepCopy()
	bare.OwnerReferences = nil
	recorded.StatusChanged(waits, bare)
	for range fewWrites + 1 {
		budget.noteWrite()
	}
	recorded.StatusChanged(waits, runs) // the API server is busy
	close(recorder.Events)
	var got []string
	for line := range recorder.Events {
		got = append(got, line)
	}
	want := []string{"Normal Admitted Admitted by ClusterQueue cq", "Warning Evicted Preempted: for another"}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// TestOnlyEventsNeverRecordedCountAsDropped: lasting facts do not count, as they are recorded later, however often
// there is no budget for them.
func TestOnlyEventsNeverRecordedCountAsDropped(t *testing.T) {
	budget := NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now))
	for range fewWrites + 1 {
		budget.noteWrite()
	}
	for budget.mayRecordEvent() {
	}
	recorder := NewBoundedRecorder(events.NewFakeRecorder(10), budget)
	job := admissiontest.NewWorkload("w", 1, nil)
	dropped := func() float64 { return metricstest.Values(t)["muster_events_dropped_total"] }
	before := dropped()
	for range 3 {
		if recorder.TryEventf(job, nil, "Warning", "InvalidJob", EventAction, "it holds") {
			t.Fatal("an event was recorded without budget")
		}
	}
	if got := dropped() - before; got != 0 {
		t.Errorf("%v events are counted as dropped, want none that is recorded later", got)
	}
	recorder.Eventf(job, nil, "Normal", "Admitted", EventAction, "it was")
	if got := dropped() - before; got != 1 {
		t.Errorf("%v events are counted as dropped, want 1", got)
	}
}

// TestEventsHaveNoControlCharacters: an event may quote what a user wrote, and kubectl prints it.
func TestEventsHaveNoControlCharacters(t *testing.T) {
	fake := events.NewFakeRecorder(1)
	recorder := NewBoundedRecorder(fake, NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)))
	recorder.Eventf(admissiontest.NewWorkload("w", 1, nil), nil, "Warning", "InvalidJob", EventAction, "no class %q, %s",
		"a\u202e", "100%d\x1b[2J")
	if got, want := <-fake.Events, `Warning InvalidJob no class "a\u202e", 100%d\x1b[2J`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWarningsWaitForTheWriteBudget: a permanent failure is reported once, so its event must not be dropped while the
// API server is busy.
func TestWarningsWaitForTheWriteBudget(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(admissiontest.Now)
	budget := NewWriteBudget(clock)
	for range fewWrites + 1 {
		budget.noteWrite()
	}
	fake := events.NewFakeRecorder(maxLateWarnings + 2)
	recorder := NewBoundedRecorder(fake, budget)
	job := admissiontest.NewWorkload("w", 1, nil)
	for i := range maxLateWarnings + 1 {
		recorder.Eventf(job, nil, "Warning", "CompileFailed", EventAction, "%d", i)
	}
	clock.SetTime(admissiontest.Now.Add(time.Hour))
	recorder.Eventf(job, nil, "Normal", "Admitted", EventAction, "it was") // takes no budget from the warnings
	if len(fake.Events) > 0 {
		t.Fatalf("recorded %q while the API server was busy, want none", <-fake.Events)
	}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := recorder.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	defer done.Wait()
	defer stop()
	for i := range maxLateWarnings {
		if got, want := <-fake.Events, fmt.Sprintf("Warning CompileFailed %d", i); got != want {
			t.Fatalf("recorded %q, want %q", got, want)
		}
	}
}

// sink is an API server that accepts events and reports the note that users see. In a series that is the note of the
// first event.
type sink struct{ reported chan string }

func (s sink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.reported <- e.Note
	return e, nil
}

func (s sink) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return e, nil }

func (s sink) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	s.reported <- e.Note
	return e, nil
}

// TestEachEvictionHasItsOwnEvent: the event has the reason of its eviction rather than that of the first one.
func TestEachEvictionHasItsOwnEvent(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	to := sink{make(chan string, 10)}
	broadcaster := events.NewBroadcaster(to)
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	reporter := &JobEvents{NewBoundedRecorder(broadcaster.NewRecorder(runtime.NewScheme(), "muster"),
		NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)))}
	w := admissiontest.NewWorkload("w", 1, nil)
	w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "u",
		Controller: ptr.To(true)}}
	for i, reason := range []string{kueue.WorkloadEvictedByAdmissionCheck, kueue.WorkloadEvictedByPodsReadyTimeout} {
		admit(w, &engine.Admission{ClusterQueue: "cq"}, nil, admissiontest.Now)
		w.ResourceVersion = strconv.Itoa(i + 1)
		evicted := w.DeepCopy()
		workload.Evict(evicted, workload.Eviction{Reason: reason, Message: "for it"}, admissiontest.Now)
		reporter.StatusChanged(w, evicted)
		select {
		case got := <-to.reported:
			if want := reason + ": for it"; got != want {
				t.Errorf("recorded %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("no event was recorded for %s", reason)
		}
		workload.GiveBack(evicted, admissiontest.Now)
		w = evicted
	}
}

// TestWhichChangesUsersAreToldOf: each once, and nothing of a change that follows.
func TestWhichChangesUsersAreToldOf(t *testing.T) {
	resized := func(w *kueue.Workload, at time.Time) {
		meta.RemoveStatusCondition(&w.Status.Conditions, muster.ResizedCondition)
		workload.SetCondition(w, muster.ResizedCondition, metav1.ConditionTrue, muster.GrownReason, "from 2 to 3 pods", at)
	}
	w := admissiontest.NewWorkload("w", 3, nil)
	for _, step := range []struct {
		name, want string
		happens    func()
	}{
		{"it waits", "", func() {
			workload.SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, "Pending", "", admissiontest.Now)
		}},
		{"its checks are not ready",
			"Normal QuotaReserved: Quota reserved in ClusterQueue cq; admission checks are not ready yet", func() {
				w.Status.Admission = &kueue.Admission{ClusterQueue: "cq"}
			}},
		{"they are", "Normal Admitted: Admitted by ClusterQueue cq", func() {
			workload.SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, "Admitted", "", admissiontest.Now)
		}},
		{"it grows", "Normal Grown: from 2 to 3 pods", func() { resized(w, admissiontest.Now) }},
		{"its pods are ready", "", func() {
			workload.SetCondition(w, kueue.WorkloadPodsReady, metav1.ConditionTrue, "Started", "", admissiontest.Now)
		}},
		{"it grows in the same way later", "Normal Grown: from 2 to 3 pods",
			func() { resized(w, admissiontest.Now.Add(time.Minute)) }},
		{"it is evicted", "Warning Evicted: Preempted: for another", func() {
			w.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j"}}
			workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"},
				admissiontest.Now)
		}},
		{"its pods are gone", "", func() { workload.GiveBack(w, admissiontest.Now) }},
	} {
		before, told := w.DeepCopy(), ""
		step.happens()
		if c, ok := changeOf(before, w); ok {
			told = fmt.Sprintf("%s %s: %s", c.Kind, c.Reason, c.Message)
		}
		if told != step.want {
			t.Errorf("%s: users are told %q, want %q", step.name, told, step.want)
		}
	}
}

// TestALongEventIsTruncatedBetweenCharacters: the API rejects invalid UTF-8.
func TestALongEventIsTruncatedBetweenCharacters(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	(&JobEvents{NewBoundedRecorder(recorder, NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)))}).record(
		nil, nil, "Normal", "A", "x"+strings.Repeat("é", 600))
	note := strings.TrimPrefix(<-recorder.Events, "Normal A ")
	if len(note) > EventMessageBytes || !utf8.ValidString(note) || !strings.HasSuffix(note, "é…") {
		t.Errorf("note has %d bytes and ends in %q, want at most the limit of the API, valid and with an ellipsis", len(note),
			note[len(note)-10:])
	}
}

// TestManyEvictionsAreNotManyEvents: the number of events of 10,000 evictions within 20 seconds is bounded.
func TestManyEvictionsAreNotManyEvents(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(admissiontest.Now)
	recorder, budget := events.NewFakeRecorder(10_000), NewWriteBudget(clock)
	reporter := &JobEvents{NewBoundedRecorder(recorder, budget)}
	runs := admissiontest.NewWorkload("w", 1, nil)
	runs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "u",
		Controller: ptr.To(true)}}
	admit(runs, &engine.Admission{ClusterQueue: "cq"}, nil, admissiontest.Now)
	evicted := runs.DeepCopy()
	workload.Evict(evicted, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"},
		admissiontest.Now)
	const storm = 10_000
	for range storm {
		clock.SetTime(clock.Now().Add(20 * time.Second / storm))
		budget.noteWrite()
		reporter.StatusChanged(runs, evicted)
	}
	atFirst := allowedEvents.burst + fewWrites
	if reported, most := len(recorder.Events), atFirst+storm/20; reported > most || reported < storm/100 {
		t.Errorf("%d events of %d evictions, want at most %d", reported, storm, most)
	}
}

func TestPreemptionsAreCounted(t *testing.T) {
	const metric = "kueue_preempted_workloads_total{preempting_cluster_queue=counted,reason=InCohortReclamation}"
	before := metricstest.Values(t)
	countPreemption(&engine.Eviction{Cause: preempt.Reclaimed, PreemptorPath: "/lab/team/counted"})
	countPreemption(&engine.Eviction{Cause: preempt.NodeFailures})
	for name, is := range metricstest.Values(t) {
		if want := before[name] + 1; name == metric && is != want {
			t.Errorf("%s = %v, want %v", name, is, want)
		} else if name != metric && strings.HasPrefix(name, "kueue_preempted") && is != before[name] {
			t.Errorf("%s has changed to %v", name, is)
		}
	}
}

// TestAWarningOfTheTimeLimitIsAnEventOnTheJobAndItsWorkload, once: a later write of the status records none.
func TestAWarningOfTheTimeLimitIsAnEventOnTheJobAndItsWorkload(t *testing.T) {
	for name, test := range map[string]struct {
		owners []metav1.OwnerReference
		want   []string
	}{
		"of a job": {[]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "u",
			Controller: ptr.To(true)}}, []string{"Workload w", "Job train"}},
		"made by hand": {nil, []string{"Workload w"}},
	} {
		to := &aboutRecorder{}
		reporter := &JobEvents{NewBoundedRecorder(to, NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)))}
		w := admissiontest.NewWorkload("w", 1, nil)
		w.OwnerReferences = test.owners
		admit(w, &engine.Admission{ClusterQueue: "cq"}, nil, admissiontest.Now)
		near := w.DeepCopy()
		workload.SetCondition(near, muster.TimeLimitNearCondition, metav1.ConditionTrue, muster.TimeLimitNearReason,
			"soon", admissiontest.Now)
		reporter.StatusChanged(w, near)
		later := near.DeepCopy()
		workload.SetCondition(later, kueue.WorkloadPodsReady, metav1.ConditionTrue, "Started", "", admissiontest.Now)
		reporter.StatusChanged(near, later)
		var want []string
		for _, object := range test.want {
			want = append(want, object+": Warning TimeLimitNear soon")
		}
		admissiontest.Expect(t, name, want, to.recorded)
	}
}

// aboutRecorder records of each event what it is about and what it says.
type aboutRecorder struct{ recorded []string }

func (a *aboutRecorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	about := regarding.(*corev1.ObjectReference)
	a.recorded = append(a.recorded, fmt.Sprintf("%s %s: %s %s "+note, append([]any{about.Kind, about.Name, kind, reason},
		args...)...))
}
