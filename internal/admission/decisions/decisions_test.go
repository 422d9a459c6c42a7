package decisions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/workload"
)

// cached is a client with stale reads of one Workload.
type cached struct {
	client.Client
	workload *kueue.Workload
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if w, ok := o.(*kueue.Workload); ok && key.Name == c.workload.Name {
		c.workload.DeepCopyInto(w)
		return nil
	}
	return c.Client.Get(ctx, key, o, options...)
}

// singleWriter is a writer with one decision, about the Workload ns/a of two pods, and the events that it reported to
// the engine. Its first attempt reads the Workload as the engine knew it.
type singleWriter struct {
	*Writer
	decision engine.Decision
	mu       sync.Mutex
	reported []engine.Event
}

// newSingleWriter returns a writer with the engine's decision to admit the Workload ns/a.
func newSingleWriter(t *testing.T, w *admissiontest.World) *singleWriter {
	t.Helper()
	return newSingleWriterOf(w, decide(t, w.Workload("a")))
}

// newSingleWriterOf returns a singleWriter with that decision.
func newSingleWriterOf(w *admissiontest.World, decision engine.Decision) *singleWriter {
	d := &singleWriter{decision: decision}
	d.Writer = NewWriter(cached{w, w.Workload("a")}, w, clocktesting.NewFakePassiveClock(admissiontest.Now),
		NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)), func(ev engine.Event) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.reported = append(d.reported, ev)
		})
	return d
}

// work makes up to that many attempts until the decision is closed.
func (s *singleWriter) work(t *testing.T, tries int) {
	t.Helper()
	s.Take(s.decision)
	for range tries {
		s.Writer.Write(t.Context(), s.decision.Key)
	}
	if len(s.open) != 0 {
		t.Errorf("after %d attempts there are open decisions: %+v", tries, s.open)
	}
}

var asked = admissiontest.Quantities("cpu", "1")

func TestDecisionWriter(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("overloaded")
	const write = "status Workload a"
	failed := []engine.Event{engine.Failed{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "a-uid", Serial: 1}}
	var a kueue.Workload
	a.Name, a.Namespace = "a", "ns"
	for name, tc := range map[string]struct {
		// then is called after the decision, before it is written.
		then          func(w *admissiontest.World)
		before, after error // errors of the first write, and of its response
		tries         int
		writes        []string
		admitted      bool
		reported      []engine.Event
	}{
		"one decision is one write": {
			tries: 1, writes: []string{write}, admitted: true},
		"an unrelated conflict": {
			then: func(w *admissiontest.World) {
				w.Edit(&a, func() { a.Labels = map[string]string{"new": "label"}; a.Generation-- })
			},
			tries: 2, writes: []string{write}, admitted: true},
		"a failed write is retried": {
			before: unavailable, tries: 2, writes: []string{write}, admitted: true},
		"a failed write that took effect": {
			after: apierrors.NewTimeoutError("no answer", 1), tries: 2, writes: []string{write}, admitted: true},
		"changed pod sets": {
			then:  func(w *admissiontest.World) { w.Edit(&a, func() { a.Spec.PodSets[0].Count = 8 }) },
			tries: 2, reported: failed},
		"a move to another queue": {
			then:  func(w *admissiontest.World) { w.Edit(&a, func() { a.Spec.QueueName = "other" }) },
			tries: 2, reported: failed},
		"a deactivation": {
			then:  func(w *admissiontest.World) { w.Edit(&a, func() { a.Spec.Active = ptr.To(false) }) },
			tries: 2, reported: failed},
		"a finished Workload": {
			then: func(w *admissiontest.World) {
				w.EditStatus(&a, func() {
					a.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue}}
				})
			},
			tries: 2, reported: failed},
		"an admission elsewhere by another client keeps the assumption until the watch event": {
			then: func(w *admissiontest.World) {
				w.EditStatus(&a, func() { a.Status.Admission = &kueue.Admission{ClusterQueue: "other"} })
			},
			tries: 2, reported: []engine.Event{engine.Written{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "a-uid",
				Serial: 1, Version: 1000}}},
		"a permanent rejection by the API server": {
			before: apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "a", errors.New("a policy says no")),
			tries:  1, reported: []engine.Event{engine.Refused{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "a-uid",
				Serial: 1, Generation: 1,
				Message: `workloads "a" is forbidden: a policy says no`, At: admissiontest.Now}}},
		"a deleted Workload": {
			then:  func(w *admissiontest.World) { w.Remove(&a) },
			tries: 1, reported: failed},
		"a later Workload of the same name": {
			then: func(w *admissiontest.World) {
				w.Remove(&a)
				later := admissiontest.NewWorkload("a", 2, asked)
				later.UID = "later-uid"
				w.Put(later)
			},
			tries: 2, reported: failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked), admissiontest.NewClusterQueue("cq", "8"),
				admissiontest.NewLocalQueue("q", "cq"))
			d := newSingleWriter(t, w)
			if tc.then != nil {
				tc.then(w)
			}
			w.Writes = nil
			w.Before, w.After = admissiontest.Once(tc.before), admissiontest.Once(tc.after)
			d.work(t, tc.tries)
			if diff := cmp.Diff(tc.writes, w.Written()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if tc.admitted {
				tc.reported = []engine.Event{engine.Written{
					Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial,
					Version: translate.VersionOf(w.Workload("a"))}}
			}
			if diff := cmp.Diff(tc.reported, d.reported); diff != "" {
				t.Errorf("reported to the engine (-want +got):\n%s", diff)
			}
			if tc.admitted && !admissionOf(w.Workload("a")).Equal(d.decision.Admit) {
				t.Errorf("status = %+v, want the decided admission", w.Workload("a").Status)
			}
			// A key that is still in the queue must have no effect any more.
			d.Writer.Write(t.Context(), d.decision.Key)
			if len(d.reported) != len(tc.reported) || len(w.Written()) != len(tc.writes) {
				t.Errorf("after the decision was closed: reported %v and wrote %v", d.reported, w.Written())
			}
		})
	}
}

// TestANewerDecisionOutlivesTheOneBeingWritten: the newer decision is made while an older one, about a deleted Workload
// of the same name, is in flight.
func TestANewerDecisionOutlivesTheOneBeingWritten(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked), admissiontest.NewClusterQueue("cq", "8"),
		admissiontest.NewLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	newer := d.decision
	newer.UID, newer.Admit = "later-uid", &engine.Admission{ClusterQueue: "cq"}
	w.Before = func(string) error {
		d.Take(newer)
		return nil
	}
	d.Take(d.decision)
	d.Writer.Write(t.Context(), d.decision.Key)
	if got := d.open[newer.Key]; got.UID != "later-uid" {
		t.Errorf("open decisions = %+v, want the newer one", d.open)
	}
	if len(d.reported) != 0 {
		t.Errorf("reported %+v of the older decision, which the engine would apply to the newer one", d.reported)
	}
}

// TestDecisionsAreWrittenConcurrently: all workers write decisions from the queue.
func TestDecisionsAreWrittenConcurrently(t *testing.T) {
	var objects []client.Object
	for i := range 50 {
		objects = append(objects, admissiontest.NewWorkload(fmt.Sprintf("w%d", i), 1, nil))
	}
	w := admissiontest.NewWorld(t,
		append([]client.Object{admissiontest.NewClusterQueue("cq", "8"),
			admissiontest.NewLocalQueue("q", "cq")}, objects...)...)
	w.Before = admissiontest.Once(apierrors.NewServiceUnavailable("overloaded"))
	a := NewWriter(w, w, clocktesting.NewFakePassiveClock(admissiontest.Now),
		NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)), func(ev engine.Event) {
			if _, ok := ev.(engine.Written); !ok {
				t.Errorf("reported %+v, want Written", ev)
			}
		})
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { a.Run(ctx) })
	for _, o := range objects {
		a.Take(decide(t, o.(*kueue.Workload)))
	}
	w.Await("all are admitted", func() bool { return len(w.Written()) == len(objects) })
	stop()
	done.Wait()
}

// evicting turns the decision into an eviction of the admitted Workload, for the Workload b.
func (s *singleWriter) evicting() {
	s.decision.Admit, s.decision.Evict = nil, &engine.Eviction{Preemptor: engine.Key{Namespace: "ns", Name: "b"}}
}

// giveQuota admits the Workload ns/a.
func giveQuota(w *admissiontest.World) {
	var a kueue.Workload
	a.Name, a.Namespace = "a", "ns"
	w.EditStatus(&a, func() { a.Status.Admission = &kueue.Admission{ClusterQueue: "cq"} })
	w.Writes = nil
}

// TestAnEvictionOutrunsTheCache: an eviction is written although the cache does not have the recent admission.
func TestAnEvictionOutrunsTheCache(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("b", 1, asked), admissiontest.NewWorkload("a", 2, asked),
		admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"))
	d := newSingleWriter(t, w) // its cache is from before the admission
	giveQuota(w)
	d.evicting()
	d.work(t, 2)
	want := []engine.Event{engine.Written{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial,
		Version: translate.VersionOf(w.Workload("a"))}}
	if diff := cmp.Diff(want, d.reported); diff != "" {
		t.Errorf("reported to the engine (-want +got):\n%s", diff)
	}
}

// TestAnAdmissionNotYetAttemptedIsWithdrawn: it is withdrawn without a write. The same Workload may be decided on again
// at once, and that decision is written.
func TestAnAdmissionNotYetAttemptedIsWithdrawn(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked), admissiontest.NewClusterQueue("cq", "8"),
		admissiontest.NewLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	d.Take(d.decision)
	d.Withdraw(engine.Decision{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial, Withdraw: true})
	d.Writer.Write(t.Context(), d.decision.Key)
	if len(w.Written()) != 0 {
		t.Errorf("writes = %v, want none", w.Written())
	}
	failed := engine.Event(engine.Failed{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial})
	if diff := cmp.Diff([]engine.Event{failed}, d.reported); diff != "" {
		t.Errorf("reported to the engine (-want +got):\n%s", diff)
	}
	d.work(t, 1)
	if diff := cmp.Diff([]string{"status Workload a"}, w.Written()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestAnAdmissionInFlightIsNotWithdrawn: its write may have taken effect, and its outcome is reported as usual.
func TestAnAdmissionInFlightIsNotWithdrawn(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked), admissiontest.NewClusterQueue("cq", "8"),
		admissiontest.NewLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	w.After = func(string) error {
		d.Withdraw(engine.Decision{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial, Withdraw: true})
		w.After = func(string) error { return nil }
		return errors.New("no answer")
	}
	d.work(t, 2)
	// A second withdrawal, after the outcome.
	d.Withdraw(engine.Decision{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial, Withdraw: true})
	want := []engine.Event{engine.Written{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial,
		Version: translate.VersionOf(w.Workload("a"))}}
	if diff := cmp.Diff(want, d.reported); diff != "" {
		t.Errorf("reported to the engine (-want +got):\n%s", diff)
	}
}

// TestDecisionsAreWrittenByUrgency: the writer takes the most urgent decision from its queue.
func TestDecisionsAreWrittenByUrgency(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked))
	d := newSingleWriter(t, w)
	for name, urgency := range map[string]int32{"low": 1, "high": 9, "middle": 5} {
		d.Take(engine.Decision{Key: engine.Key{Namespace: "ns", Name: name}, Admit: &engine.Admission{}, Urgency: urgency})
	}
	var got []string
	for range 3 {
		key, _ := d.queue.Get()
		got = append(got, key.Name)
	}
	if diff := cmp.Diff([]string{"high", "middle", "low"}, got); diff != "" {
		t.Errorf("order of the writes (-want +got):\n%s", diff)
	}
}

// TestAnEvictionWaitsForLateEvents: the eviction of a Workload that ends meanwhile is not written.
func TestAnEvictionWaitsForLateEvents(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("b", 1, asked), admissiontest.NewWorkload("a", 2, asked),
		admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	giveQuota(w)
	d.evicting()
	for range fewWrites + 1 {
		d.Budget.noteWrite()
		d.Budget.noteDuration(50 * time.Millisecond)
	}
	d.Take(d.decision)
	if d.queue.Len() != 0 {
		t.Error("the eviction is queued at once, want it delayed while the API server is slow")
	}
	ended := w.Workload("a")
	workload.SetCondition(ended, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded, "",
		admissiontest.Now)
	d.client = cached{w, ended}
	key, _ := d.queue.Get()
	d.Writer.Write(t.Context(), key) // at the turn of an earlier decision, which is too early
	if len(d.reported) != 0 {
		t.Errorf("reported before the delay was over: %+v", d.reported)
	}
	d.clock.(*clocktesting.FakePassiveClock).SetTime(admissiontest.Now.Add(longestLag))
	d.Writer.Write(t.Context(), key)
	if len(w.Written()) != 0 {
		t.Errorf("writes = %v, want none", w.Written())
	}
	if diff := cmp.Diff([]engine.Event{engine.Failed{Key: key, UID: d.decision.UID, Serial: d.decision.Serial}},
		d.reported); diff != "" {
		t.Errorf("reported to the engine (-want +got):\n%s", diff)
	}
}

// TestADecisionDoesNotWaitForAnEarlierOne: the retries of an earlier decision about the same Workload do not delay a
// new one.
func TestADecisionDoesNotWaitForAnEarlierOne(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("b", 1, asked), admissiontest.NewWorkload("a", 2, asked),
		admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	w.Before = func(string) error { return apierrors.NewServiceUnavailable("overloaded") }
	d.Take(d.decision)
	for range 10 {
		d.Writer.Write(t.Context(), d.decision.Key)
	}
	giveQuota(w)
	d.client = cached{w, w.Workload("a")}
	d.evicting()
	d.decision.Serial++
	d.Take(d.decision)
	if n := d.queue.NumRequeues(d.decision.Key); n != 0 {
		t.Errorf("the new decision has %d retries, want none", n)
	}
}
