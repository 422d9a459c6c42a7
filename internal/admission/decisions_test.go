package admission

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
	*decisionWriter
	decision engine.Decision
	mu       sync.Mutex
	reported []engine.Event
}

// newSingleWriter returns a writer with the engine's decision to admit the Workload ns/a.
func newSingleWriter(t *testing.T, w *world) *singleWriter {
	t.Helper()
	return newSingleWriterOf(w, decide(t, w.workload("a")))
}

// newSingleWriterOf returns a singleWriter with that decision.
func newSingleWriterOf(w *world, decision engine.Decision) *singleWriter {
	d := &singleWriter{decision: decision}
	d.decisionWriter = newDecisionWriter(cached{w, w.workload("a")}, w, clocktesting.NewFakePassiveClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)), func(ev engine.Event) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.reported = append(d.reported, ev)
	})
	return d
}

// work makes up to that many attempts until the decision is closed.
func (d *singleWriter) work(t *testing.T, tries int) {
	t.Helper()
	d.take(d.decision)
	for range tries {
		d.decisionWriter.write(t.Context(), d.decision.Key)
	}
	if len(d.open) != 0 {
		t.Errorf("after %d attempts there are open decisions: %+v", tries, d.open)
	}
}

var asked = quantities("cpu", "1")

func TestDecisionWriter(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("overloaded")
	const write = "status Workload a"
	failed := []engine.Event{engine.Failed{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "a-uid", Serial: 1}}
	var a kueue.Workload
	a.Name, a.Namespace = "a", "ns"
	for name, tc := range map[string]struct {
		// then is called after the decision, before it is written.
		then          func(w *world)
		before, after error // errors of the first write, and of its response
		tries         int
		writes        []string
		admitted      bool
		reported      []engine.Event
	}{
		"one decision is one write": {
			tries: 1, writes: []string{write}, admitted: true},
		"an unrelated conflict": {
			then:  func(w *world) { w.edit(&a, func() { a.Labels = map[string]string{"new": "label"}; a.Generation-- }) },
			tries: 2, writes: []string{write}, admitted: true},
		"a failed write is retried": {
			before: unavailable, tries: 2, writes: []string{write}, admitted: true},
		"a failed write that took effect": {
			after: apierrors.NewTimeoutError("no answer", 1), tries: 2, writes: []string{write}, admitted: true},
		"changed pod sets": {
			then:  func(w *world) { w.edit(&a, func() { a.Spec.PodSets[0].Count = 8 }) },
			tries: 2, reported: failed},
		"a move to another queue": {
			then:  func(w *world) { w.edit(&a, func() { a.Spec.QueueName = "other" }) },
			tries: 2, reported: failed},
		"a deactivation": {
			then:  func(w *world) { w.edit(&a, func() { a.Spec.Active = ptr.To(false) }) },
			tries: 2, reported: failed},
		"a finished Workload": {
			then: func(w *world) {
				w.editStatus(&a, func() {
					a.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue}}
				})
			},
			tries: 2, reported: failed},
		"an admission elsewhere by another client keeps the assumption until the watch event": {
			then: func(w *world) {
				w.editStatus(&a, func() { a.Status.Admission = &kueue.Admission{ClusterQueue: "other"} })
			},
			tries: 2, reported: []engine.Event{engine.Written{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "a-uid", Serial: 1, Version: 1000}}},
		"a permanent rejection by the API server": {
			before: apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "a", errors.New("a policy says no")),
			tries:  1, reported: []engine.Event{engine.Refused{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "a-uid", Serial: 1, Generation: 1,
				Message: `workloads "a" is forbidden: a policy says no`, At: now}}},
		"a deleted Workload": {
			then:  func(w *world) { w.remove(&a) },
			tries: 1, reported: failed},
		"a later Workload of the same name": {
			then: func(w *world) {
				w.remove(&a)
				later := newWorkload("a", 2, asked)
				later.UID = "later-uid"
				w.put(later)
			},
			tries: 2, reported: failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
			d := newSingleWriter(t, w)
			if tc.then != nil {
				tc.then(w)
			}
			w.writes = nil
			w.before, w.after = once(tc.before), once(tc.after)
			d.work(t, tc.tries)
			if diff := cmp.Diff(tc.writes, w.written()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if tc.admitted {
				tc.reported = []engine.Event{engine.Written{
					Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial, Version: versionOf(w.workload("a"))}}
			}
			if diff := cmp.Diff(tc.reported, d.reported); diff != "" {
				t.Errorf("reported to the engine (-want +got):\n%s", diff)
			}
			if tc.admitted && !admissionOf(w.workload("a")).Equal(d.decision.Admit) {
				t.Errorf("status = %+v, want the decided admission", w.workload("a").Status)
			}
			// A key that is still in the queue must have no effect any more.
			d.decisionWriter.write(t.Context(), d.decision.Key)
			if len(d.reported) != len(tc.reported) || len(w.written()) != len(tc.writes) {
				t.Errorf("after the decision was closed: reported %v and wrote %v", d.reported, w.written())
			}
		})
	}
}

// once returns the error for the first write only.
func once(err error) func(string) error {
	var first sync.Once
	return func(string) (answer error) {
		first.Do(func() { answer = err })
		return answer
	}
}

func (w *world) put(o client.Object) {
	w.t.Helper()
	if err := w.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(o client.Object) {
	w.t.Helper()
	if err := w.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) editStatus(o client.Object, change func()) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatal(err)
	}
	change()
	if err := w.Status().Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// TestANewerDecisionOutlivesTheOneBeingWritten: the newer decision is made while an older one, about a deleted Workload
// of the same name, is in flight.
func TestANewerDecisionOutlivesTheOneBeingWritten(t *testing.T) {
	w := newWorld(t, newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	newer := d.decision
	newer.UID, newer.Admit = "later-uid", &engine.Admission{ClusterQueue: "cq"}
	w.before = func(string) error {
		d.take(newer)
		return nil
	}
	d.take(d.decision)
	d.decisionWriter.write(t.Context(), d.decision.Key)
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
		objects = append(objects, newWorkload(fmt.Sprintf("w%d", i), 1, nil))
	}
	w := newWorld(t, append([]client.Object{newClusterQueue("cq", "8"), newLocalQueue("q", "cq")}, objects...)...)
	w.before = once(apierrors.NewServiceUnavailable("overloaded"))
	a := newDecisionWriter(w, w, clocktesting.NewFakePassiveClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)), func(ev engine.Event) {
		if _, ok := ev.(engine.Written); !ok {
			t.Errorf("reported %+v, want Written", ev)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { a.run(ctx) })
	for _, o := range objects {
		a.take(decide(t, o.(*kueue.Workload)))
	}
	w.await("all are admitted", func() bool { return len(w.written()) == len(objects) })
	stop()
	done.Wait()
}

// evicting turns the decision into an eviction of the admitted Workload, for the Workload b.
func (d *singleWriter) evicting() {
	d.decision.Admit, d.decision.Evict = nil, &engine.Eviction{Preemptor: engine.Key{Namespace: "ns", Name: "b"}}
}

// giveQuota admits the Workload ns/a.
func giveQuota(w *world) {
	var a kueue.Workload
	a.Name, a.Namespace = "a", "ns"
	w.editStatus(&a, func() { a.Status.Admission = &kueue.Admission{ClusterQueue: "cq"} })
	w.writes = nil
}

// TestAnEvictionOutrunsTheCache: an eviction is written although the cache does not have the recent admission.
func TestAnEvictionOutrunsTheCache(t *testing.T) {
	w := newWorld(t, newWorkload("b", 1, asked), newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
	d := newSingleWriter(t, w) // its cache is from before the admission
	giveQuota(w)
	d.evicting()
	d.work(t, 2)
	want := []engine.Event{engine.Written{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial, Version: versionOf(w.workload("a"))}}
	if diff := cmp.Diff(want, d.reported); diff != "" {
		t.Errorf("reported to the engine (-want +got):\n%s", diff)
	}
}

// TestAnAdmissionNotYetAttemptedIsWithdrawn: it is withdrawn without a write. The same Workload may be decided on again
// at once, and that decision is written.
func TestAnAdmissionNotYetAttemptedIsWithdrawn(t *testing.T) {
	w := newWorld(t, newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	d.take(d.decision)
	d.withdraw(engine.Decision{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial, Withdraw: true})
	d.decisionWriter.write(t.Context(), d.decision.Key)
	if len(w.written()) != 0 {
		t.Errorf("writes = %v, want none", w.written())
	}
	failed := engine.Event(engine.Failed{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial})
	if diff := cmp.Diff([]engine.Event{failed}, d.reported); diff != "" {
		t.Errorf("reported to the engine (-want +got):\n%s", diff)
	}
	d.work(t, 1)
	if diff := cmp.Diff([]string{"status Workload a"}, w.written()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestAnAdmissionInFlightIsNotWithdrawn: its write may have taken effect, and its outcome is reported as usual.
func TestAnAdmissionInFlightIsNotWithdrawn(t *testing.T) {
	w := newWorld(t, newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	w.after = func(string) error {
		d.withdraw(engine.Decision{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial, Withdraw: true})
		w.after = func(string) error { return nil }
		return errors.New("no answer")
	}
	d.work(t, 2)
	// A second withdrawal, after the outcome.
	d.withdraw(engine.Decision{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial, Withdraw: true})
	want := []engine.Event{engine.Written{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial, Version: versionOf(w.workload("a"))}}
	if diff := cmp.Diff(want, d.reported); diff != "" {
		t.Errorf("reported to the engine (-want +got):\n%s", diff)
	}
}

// TestDecisionsAreWrittenByUrgency: the writer takes the most urgent decision from its queue.
func TestDecisionsAreWrittenByUrgency(t *testing.T) {
	w := newWorld(t, newWorkload("a", 2, asked))
	d := newSingleWriter(t, w)
	for name, urgency := range map[string]int32{"low": 1, "high": 9, "middle": 5} {
		d.take(engine.Decision{Key: engine.Key{Namespace: "ns", Name: name}, Admit: &engine.Admission{}, Urgency: urgency})
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
	w := newWorld(t, newWorkload("b", 1, asked), newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	giveQuota(w)
	d.evicting()
	for range fewWrites + 1 {
		d.budget.noteWrite()
		d.budget.noteDuration(50 * time.Millisecond)
	}
	d.take(d.decision)
	if d.queue.Len() != 0 {
		t.Error("the eviction is queued at once, want it delayed while the API server is slow")
	}
	ended := w.workload("a")
	workload.SetCondition(ended, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded, "", now)
	d.client = cached{w, ended}
	key, _ := d.queue.Get()
	d.decisionWriter.write(t.Context(), key) // at the turn of an earlier decision, which is too early
	if len(d.reported) != 0 {
		t.Errorf("reported before the delay was over: %+v", d.reported)
	}
	d.clock.(*clocktesting.FakePassiveClock).SetTime(now.Add(longestLag))
	d.decisionWriter.write(t.Context(), key)
	if len(w.written()) != 0 {
		t.Errorf("writes = %v, want none", w.written())
	}
	if diff := cmp.Diff([]engine.Event{engine.Failed{Key: key, UID: d.decision.UID, Serial: d.decision.Serial}}, d.reported); diff != "" {
		t.Errorf("reported to the engine (-want +got):\n%s", diff)
	}
}

// TestADecisionDoesNotWaitForAnEarlierOne: the retries of an earlier decision about the same Workload do not delay a
// new one.
func TestADecisionDoesNotWaitForAnEarlierOne(t *testing.T) {
	w := newWorld(t, newWorkload("b", 1, asked), newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	w.before = func(string) error { return apierrors.NewServiceUnavailable("overloaded") }
	d.take(d.decision)
	for range 10 {
		d.decisionWriter.write(t.Context(), d.decision.Key)
	}
	giveQuota(w)
	d.client = cached{w, w.workload("a")}
	d.evicting()
	d.decision.Serial++
	d.take(d.decision)
	if n := d.queue.NumRequeues(d.decision.Key); n != 0 {
		t.Errorf("the new decision has %d retries, want none", n)
	}
}
