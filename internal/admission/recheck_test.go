package admission

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/workload"
)

// TestStoppingAQueueStopsPendingDecisions: an unwritten admission is not written any more, and the engine, which may
// know of the stop by then, decides again.
func TestStoppingAQueueStopsPendingDecisions(t *testing.T) {
	newQueue, newLocal := func() *kueue.ClusterQueue { return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}} },
		func() *kueue.LocalQueue {
			return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "ns"}}
		}
	for name, tc := range map[string]struct {
		then     func(w *world)
		admitted bool
	}{
		"a restarted queue admits": {func(w *world) {
			q := newQueue()
			w.edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.None) })
		}, true},
		"Hold of the ClusterQueue": {func(w *world) {
			q := newQueue()
			w.edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.Hold) })
		}, false},
		"HoldAndDrain of the ClusterQueue": {func(w *world) {
			q := newQueue()
			w.edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.HoldAndDrain) })
		}, false},
		"a ClusterQueue that its Volcano Queue closes": {func(w *world) {
			q := newQueue()
			w.edit(q, func() { q.Annotations = map[string]string{muster.ClosedAnnotation: "true"} })
		}, false},
		"a ClusterQueue that is being deleted": {func(w *world) {
			q := newQueue()
			w.edit(q, func() { q.Finalizers = []string{kueue.ResourceInUseFinalizer} })
			w.remove(q)
		}, false},
		"a missing ClusterQueue": {func(w *world) { w.remove(newQueue()) }, false},
		"an AdmissionCheck that was added": {func(w *world) {
			q := newQueue()
			w.edit(q, func() { q.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"budget"} })
		}, false},
		"an AdmissionCheck of another flavor": {func(w *world) {
			q := newQueue()
			w.edit(q, func() {
				q.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{
					{Name: "budget", OnFlavors: []kueue.ResourceFlavorReference{"another"}}}}
			})
		}, true},
		"Hold of the LocalQueue": {func(w *world) {
			q := newLocal()
			w.edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.Hold) })
		}, false},
		"a missing LocalQueue": {func(w *world) { w.remove(newLocal()) }, false},
		"a LocalQueue that is being deleted": {func(w *world) {
			q := newLocal()
			w.edit(q, func() { q.Finalizers = []string{metav1.FinalizerDeleteDependents} })
			w.remove(q)
		}, false},
		"a LocalQueue that leads elsewhere by now": {func(w *world) {
			w.remove(newLocal())
			w.put(newLocalQueue("q", "other"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
			d := newDesk(t, w)
			tc.then(w)
			w.writes = nil
			d.work(t, 1)
			want, told := []string(nil), engine.Event(engine.Failed{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial})
			if tc.admitted {
				want, told = []string{"status Workload a"}, engine.Written{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial, Version: versionOf(w.workload("a"))}
			}
			if diff := cmp.Diff(want, w.written()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]engine.Event{told}, d.told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHoldingBackAWorkloadStopsPendingDecisions: a gate or a deletion does not change the generation, but the cache
// of the first attempt shows it.
func TestHoldingBackAWorkloadStopsPendingDecisions(t *testing.T) {
	for name, then := range map[string]func(w *kueue.Workload){
		"a gate": func(w *kueue.Workload) {
			w.Annotations = map[string]string{kueue.AdmissionGatedByAnnotation: "someone"}
		},
		"a deletion": func(w *kueue.Workload) { w.DeletionTimestamp = ptr.To(metav1.NewTime(now)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
			d := newDesk(t, w)
			by := w.workload("a")
			then(by)
			d.client = cached{w, by}
			d.work(t, 1)
			if got := w.written(); len(got) != 0 {
				t.Errorf("written: %v", got)
			}
			if diff := cmp.Diff([]engine.Event{engine.Failed{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial}}, d.told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAStoppedQueueIsNotDecidedOnAgain: neither the writer retries the write, nor does the engine decide it again
// once it knows of the stop, which it gets from the same cache.
func TestAStoppedQueueIsNotDecidedOnAgain(t *testing.T) {
	f := newFloor(t, machine("a"), newWorkload("w", 1, quantities("cpu", "1")))
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}}
	f.edit(queue, func() { queue.Spec.StopPolicy = ptr.To(kueue.Hold) })
	if got := f.decide(); len(got) != 1 || got[0].Admit == nil {
		t.Fatalf("before it heard of the stop it decided %+v", got)
	}
	if f.world.workload("w").Status.Admission != nil {
		t.Fatal("it was admitted into a stopped queue")
	}
	f.hear(f.changed(client.Object(queue), f.at)...)
	for range 3 {
		for _, d := range f.decide() {
			if d.Admit != nil {
				t.Fatalf("decided again: %+v", d)
			}
		}
	}
	f.edit(queue, func() { queue.Spec.StopPolicy = nil })
	f.hear(f.changed(client.Object(queue), f.at)...)
	f.decide()
	if f.world.workload("w").Status.Admission == nil {
		t.Error("not admitted once the queue goes on")
	}
}

// sizing returns a floor on which the Workload large, of up to three pods, must shrink for the Workload one, or may
// grow after that has ended, and the decision about it.
func sizing(t *testing.T, grows bool) (*floor, engine.Decision) {
	t.Helper()
	f := newFloor(t, machine("a"), machine("b"), machine("c"), elasticWorkload("large", 1, 3))
	f.decide()
	f.at = f.at.Add(time.Minute)
	f.comes(newWorkload("one", 1, quantities("cpu", "3")))
	if grows {
		f.decide()
		f.shrunk("large")
		f.decide()
		f.at = f.at.Add(time.Minute)
		f.hear(f.deleted(f.world.workload("one"))...)
	}
	for _, d := range f.Decide(f.at) {
		if d.Resize != nil {
			f.world.writes = nil
			return f, d
		}
	}
	t.Fatal("nobody is resized")
	panic("unreachable")
}

// TestAWorkloadThatMayNotGrowIsNotGrown, and no other shrinks for it. The engine, once it knows, does not decide the
// same again.
func TestAWorkloadThatMayNotGrowIsNotGrown(t *testing.T) {
	hold := func(name string, hold func(*kueue.Workload)) func(f *floor) client.Object {
		return func(f *floor) client.Object {
			o := f.world.workload(name)
			f.world.edit(o, func() { hold(o) })
			return o
		}
	}
	stopQueue := func(f *floor) client.Object {
		q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}}
		f.world.edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.Hold) })
		return q
	}
	stopLocal := func(f *floor) client.Object {
		q := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "ns"}}
		f.world.edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.Hold) })
		return q
	}
	deactivate := func(w *kueue.Workload) { w.Spec.Active = ptr.To(false) }
	gate := func(w *kueue.Workload) {
		w.Annotations = map[string]string{kueue.AdmissionGatedByAnnotation: "someone"}
	}
	for name, tc := range map[string]struct {
		grows   bool
		then    func(f *floor) client.Object
		written bool
	}{
		"nothing happens, and it yields":             {then: func(*floor) client.Object { return nil }, written: true},
		"nothing happens, and it grows":              {grows: true, then: func(*floor) client.Object { return nil }, written: true},
		"it is to yield in a queue that is stopped":  {then: stopQueue},
		"it grows in a queue that is stopped":        {grows: true, then: stopQueue},
		"it is to yield in a LocalQueue that is":     {then: stopLocal},
		"it grows in a LocalQueue that is":           {grows: true, then: stopLocal},
		"it is to shrink for a deactivated workload": {then: hold("one", deactivate)},
		"it is to shrink for a gated workload":       {then: hold("one", gate)},
		"it grows though it is deactivated":          {grows: true, then: hold("large", deactivate)},
		"it grows though a gate is for the next one": {grows: true, then: hold("large", gate), written: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, d := sizing(t, tc.grows)
			changed := tc.then(f)
			clock := clocktesting.NewFakePassiveClock(f.at)
			writer := newDecisionWriter(f.world, f.world, clock, newWriteBudget(clock), func(ev engine.Event) { f.hear(ev) })
			writer.take(d)
			writer.write(t.Context(), d.Key)
			writer.write(t.Context(), d.Key) // the first attempt may have been too early
			if got := len(f.world.written()) > 0; got != tc.written {
				t.Fatalf("written is %v: %v", got, f.world.written())
			}
			if changed == nil || tc.written {
				return
			}
			f.hear(f.changed(changed, f.at)...)
			for _, d := range f.Decide(f.at.Add(time.Hour)) {
				if d.Resize != nil {
					t.Errorf("decided again: %+v", d)
				}
			}
		})
	}
}

// TestNoEvictionForAPreemptorThatCannotBeAdmitted: an unwritten eviction is not written any more.
func TestNoEvictionForAPreemptorThatCannotBeAdmitted(t *testing.T) {
	held := func(w *kueue.Workload) { w.Status.Admission = &kueue.Admission{ClusterQueue: "cq"} }
	for name, tc := range map[string]struct {
		by      *kueue.Workload
		change  func(*kueue.Workload)
		uid     string
		written bool
	}{
		"one that waits":                                {by: newWorkload("b", 1, asked), uid: "b-uid", written: true},
		"a missing one":                                 {uid: "b-uid"},
		"a later one of the same name":                  {by: newWorkload("b", 1, asked), uid: "another"},
		"a deactivated one":                             {by: newWorkload("b", 1, asked), uid: "b-uid", change: func(w *kueue.Workload) { w.Spec.Active = ptr.To(false) }},
		"one with a missing queue":                      {by: newWorkload("b", 1, asked), uid: "b-uid", change: func(w *kueue.Workload) { w.Spec.QueueName = "none" }},
		"one that was admitted meanwhile":               {by: newWorkload("b", 1, asked), uid: "b-uid", change: held},
		"a running one that is to grow":                 {by: elasticWorkload("b", 1, 3), uid: "b-uid", change: held, written: true},
		"none, for an eviction because of failed nodes": {written: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newWorkload("a", 2, asked)
			held(a)
			objects := []client.Object{a, newClusterQueue("cq", "8"), newLocalQueue("q", "cq")}
			if tc.by != nil {
				if tc.change != nil {
					tc.change(tc.by)
				}
				objects = append(objects, tc.by)
			}
			w := newWorld(t, objects...)
			decision := engine.Decision{Key: keyOf(a), UID: "a-uid", Generation: 1, Evict: &engine.Eviction{Cause: preempt.NodeFailures}}
			if tc.uid != "" {
				decision.Evict = &engine.Eviction{Preemptor: engine.Key{Namespace: "ns", Name: "b"}, PreemptorUID: tc.uid}
			}
			clock := clocktesting.NewFakePassiveClock(now)
			var told []engine.Event
			writer := newDecisionWriter(w, w, clock, newWriteBudget(clock), func(ev engine.Event) { told = append(told, ev) })
			writer.take(decision)
			writer.write(t.Context(), decision.Key)
			writer.write(t.Context(), decision.Key)
			if got := workload.IsEvicted(w.workload("a")); got != tc.written {
				t.Errorf("evicted is %v", got)
			}
			if len(told) != 1 {
				t.Fatalf("told %+v", told)
			}
			if _, ok := told[0].(engine.Written); ok != tc.written {
				t.Errorf("told %+v", told)
			}
		})
	}
}

// TestAWorkloadThatIsBeingDeletedDoesNotQueue: another client's finalizer may keep it for long. If it holds quota it
// keeps that.
func TestAWorkloadThatIsBeingDeletedDoesNotQueue(t *testing.T) {
	w := newWorkload("a", 2, asked)
	w.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	if diff := cmp.Diff([]engine.Event{engine.WorkloadGone{Key: keyOf(w)}}, words().changed(w, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq"}
	if held, holds := words().changed(w, now)[0].(engine.WorkloadSet); !holds || !held.Inactive {
		t.Error("what it holds is forgotten, or it may have more")
	}
}

// TestACheckListedTwiceCountsOnce: the API permits that, for different flavors or by mistake.
func TestACheckListedTwiceCountsOnce(t *testing.T) {
	strategy := &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{
		{Name: "check", OnFlavors: []kueue.ResourceFlavorReference{"f", "g"}}, {Name: "check", OnFlavors: []kueue.ResourceFlavorReference{"f"}}}}
	for name, spec := range map[string]kueue.ClusterQueueSpec{
		"for all flavors": {AdmissionChecks: []kueue.AdmissionCheckReference{"check", "check"}}, "for some": {AdmissionChecksStrategy: strategy},
	} {
		t.Run(name, func(t *testing.T) {
			q, check := newClusterQueue("cq", "8"), &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "check"}}
			q.Spec.AdmissionChecks, q.Spec.AdmissionChecksStrategy = spec.AdmissionChecks, spec.AdmissionChecksStrategy
			check.Status.Conditions = []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue}}
			objects := []client.Object{namespace.DeepCopy(), newFlavor("f"), check, q, newLocalQueue("q", "cq"), newWorkload("a", 2, asked)}
			w := newWorld(t, objects...)
			l := newLoop(manager{feed: &feed{world: w}}, config.Default())
			for _, o := range objects {
				l.mailbox.put(message{changed: o})
			}
			l.turn()
			l.decisions.write(t.Context(), engine.Key{Namespace: "ns", Name: "a"})
			a := w.workload("a")
			if a.Status.Admission == nil || len(a.Status.AdmissionChecks) != 1 {
				t.Errorf("it holds %+v and awaits %+v", a.Status.Admission, a.Status.AdmissionChecks)
			}
		})
	}
}
