package decisions

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/workload"
)

// TestStoppingAQueueStopsPendingDecisions: an unwritten admission is no longer written, and the engine, which may know
// of the stop by then, decides again.
func TestStoppingAQueueStopsPendingDecisions(t *testing.T) {
	newQueue, newLocal := func() *kueue.ClusterQueue {
		return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}}
	},
		func() *kueue.LocalQueue {
			return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "ns"}}
		}
	for name, tc := range map[string]struct {
		then     func(w *admissiontest.World)
		admitted bool
	}{
		"a restarted queue": {func(w *admissiontest.World) {
			q := newQueue()
			w.Edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.None) })
		}, true},
		"Hold of the ClusterQueue": {func(w *admissiontest.World) {
			q := newQueue()
			w.Edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.Hold) })
		}, false},
		"HoldAndDrain of the ClusterQueue": {func(w *admissiontest.World) {
			q := newQueue()
			w.Edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.HoldAndDrain) })
		}, false},
		"a ClusterQueue that its Volcano Queue closes": {func(w *admissiontest.World) {
			q := newQueue()
			w.Edit(q, func() { q.Annotations = map[string]string{muster.ClosedAnnotation: "true"} })
		}, false},
		"a ClusterQueue that is being deleted": {func(w *admissiontest.World) {
			q := newQueue()
			w.Edit(q, func() { q.Finalizers = []string{kueue.ResourceInUseFinalizer} })
			w.Remove(q)
		}, false},
		"a missing ClusterQueue": {func(w *admissiontest.World) { w.Remove(newQueue()) }, false},
		"an AdmissionCheck that was added": {func(w *admissiontest.World) {
			q := newQueue()
			w.Edit(q, func() { q.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"budget"} })
		}, false},
		"an AdmissionCheck of another flavor": {func(w *admissiontest.World) {
			q := newQueue()
			w.Edit(q, func() {
				q.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{
					{Name: "budget", OnFlavors: []kueue.ResourceFlavorReference{"another"}}}}
			})
		}, true},
		"Hold of the LocalQueue": {func(w *admissiontest.World) {
			q := newLocal()
			w.Edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.Hold) })
		}, false},
		"a missing LocalQueue": {func(w *admissiontest.World) { w.Remove(newLocal()) }, false},
		"a LocalQueue that is being deleted": {func(w *admissiontest.World) {
			q := newLocal()
			w.Edit(q, func() { q.Finalizers = []string{metav1.FinalizerDeleteDependents} })
			w.Remove(q)
		}, false},
		"a LocalQueue that now points elsewhere": {func(w *admissiontest.World) {
			w.Remove(newLocal())
			w.Put(admissiontest.NewClusterQueue("other", "8"))
			w.Put(admissiontest.NewLocalQueue("q", "other"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked), admissiontest.NewClusterQueue("cq", "8"),
				admissiontest.NewLocalQueue("q", "cq"))
			d := newSingleWriter(t, w)
			tc.then(w)
			w.Writes = nil
			d.work(t, 1)
			want, reported := []string(nil),
				engine.Event(engine.Failed{Key: d.decision.Key, UID: d.decision.UID, Serial: d.decision.Serial})
			if tc.admitted {
				want, reported = []string{"status Workload a"}, engine.Written{Key: d.decision.Key, UID: d.decision.UID,
					Serial: d.decision.Serial, Version: translate.VersionOf(w.Workload("a"))}
			}
			if diff := cmp.Diff(want, w.Written()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]engine.Event{reported}, d.reported); diff != "" {
				t.Errorf("reported to the engine (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHoldingBackAWorkloadStopsPendingDecisions: a gate or a deletion does not change the generation, but the cache
// read of the first attempt shows it.
func TestHoldingBackAWorkloadStopsPendingDecisions(t *testing.T) {
	for name, then := range map[string]func(w *kueue.Workload){
		"a gate": func(w *kueue.Workload) {
			w.Annotations = map[string]string{kueue.AdmissionGatedByAnnotation: "someone"}
		},
		"a deletion": func(w *kueue.Workload) { w.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked), admissiontest.NewClusterQueue("cq", "8"),
				admissiontest.NewLocalQueue("q", "cq"))
			d := newSingleWriter(t, w)
			by := w.Workload("a")
			then(by)
			d.client = cached{w, by}
			d.work(t, 1)
			if got := w.Written(); len(got) != 0 {
				t.Errorf("writes = %v, want none", got)
			}
			if diff := cmp.Diff([]engine.Event{engine.Failed{Key: d.decision.Key, UID: d.decision.UID,
				Serial: d.decision.Serial}}, d.reported); diff != "" {
				t.Errorf("reported to the engine (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAStoppedQueueIsNotDecidedOnAgain: the writer does not retry the write, and the engine does not decide it again
// once it has observed the stop, which it gets from the same cache.
func TestAStoppedQueueIsNotDecidedOnAgain(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), admissiontest.NewWorkload("w", 1, admissiontest.Quantities("cpu", "1")))
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}}
	f.Edit(queue, func() { queue.Spec.StopPolicy = ptr.To(kueue.Hold) })
	if got := f.decide(); len(got) != 1 || got[0].Admit == nil {
		t.Fatalf("before the engine observed the stop: got decisions %+v, want an admission", got)
	}
	if f.World.Workload("w").Status.Admission != nil {
		t.Fatal("the Workload was admitted by a stopped queue")
	}
	f.observe(f.Changed(client.Object(queue), f.at)...)
	for range 3 {
		for _, d := range f.decide() {
			if d.Admit != nil {
				t.Fatalf("got decision %+v, want no admission again", d)
			}
		}
	}
	f.Edit(queue, func() { queue.Spec.StopPolicy = nil })
	f.observe(f.Changed(client.Object(queue), f.at)...)
	f.decide()
	if f.World.Workload("w").Status.Admission == nil {
		t.Error("the Workload is not admitted after the restart of the queue")
	}
}

// sizing returns a scene, and a decision about the Workload large, of up to three pods: it must shrink for the Workload
// one, or may grow after that has ended.
func sizing(t *testing.T, grows bool) (*nodeScene, engine.Decision) {
	t.Helper()
	f := newNodeScene(t, readyNode("a"), readyNode("b"), readyNode("c"), admissiontest.ElasticWorkload("large", 1, 3))
	f.decide()
	f.at = f.at.Add(time.Minute)
	f.create(admissiontest.NewWorkload("one", 1, admissiontest.Quantities("cpu", "3")))
	if grows {
		f.decide()
		f.shrunk("large")
		f.decide()
		f.at = f.at.Add(time.Minute)
		f.observe(f.Deleted(f.World.Workload("one"))...)
	}
	for _, d := range f.Decide(f.at) {
		if d.Resize != nil {
			f.World.Writes = nil
			return f, d
		}
	}
	t.Fatal("no Workload is resized")
	panic("unreachable")
}

// TestAWorkloadThatMayNotGrowIsNotGrown: neither does it grow nor does another shrink for it. Once the engine has
// observed that, it does not decide the same again.
func TestAWorkloadThatMayNotGrowIsNotGrown(t *testing.T) {
	hold := func(name string, hold func(*kueue.Workload)) func(f *nodeScene) client.Object {
		return func(f *nodeScene) client.Object {
			o := f.World.Workload(name)
			f.World.Edit(o, func() { hold(o) })
			return o
		}
	}
	stopQueue := func(f *nodeScene) client.Object {
		q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}}
		f.World.Edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.Hold) })
		return q
	}
	stopLocal := func(f *nodeScene) client.Object {
		q := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "ns"}}
		f.World.Edit(q, func() { q.Spec.StopPolicy = ptr.To(kueue.Hold) })
		return q
	}
	deactivate := func(w *kueue.Workload) { w.Spec.Active = ptr.To(false) }
	gate := func(w *kueue.Workload) {
		w.Annotations = map[string]string{kueue.AdmissionGatedByAnnotation: "someone"}
	}
	for name, tc := range map[string]struct {
		grows   bool
		then    func(f *nodeScene) client.Object
		written bool
	}{
		"shrinks without a change": {then: func(*nodeScene) client.Object {
			return nil
		}, written: true},
		"grows without a change": {grows: true,
			then: func(*nodeScene) client.Object { return nil }, written: true},
		"shrinks in a stopped ClusterQueue":                      {then: stopQueue},
		"grows in a stopped ClusterQueue":                        {grows: true, then: stopQueue},
		"shrinks in a stopped LocalQueue":                        {then: stopLocal},
		"grows in a stopped LocalQueue":                          {grows: true, then: stopLocal},
		"shrinks for a deactivated Workload":                     {then: hold("one", deactivate)},
		"shrinks for a gated Workload":                           {then: hold("one", gate)},
		"grows while deactivated":                                {grows: true, then: hold("large", deactivate)},
		"grows with a gate, which applies to the next admission": {grows: true, then: hold("large", gate), written: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, d := sizing(t, tc.grows)
			changed := tc.then(f)
			clock := clocktesting.NewFakePassiveClock(f.at)
			writer := NewWriter(f.World, f.World, clock, NewWriteBudget(clock), func(ev engine.Event) { f.observe(ev) })
			writer.Take(d)
			writer.Write(t.Context(), d.Key)
			writer.Write(t.Context(), d.Key) // the first attempt may have been too early
			if got := len(f.World.Written()) > 0; got != tc.written {
				t.Fatalf("written = %v, writes %v", got, f.World.Written())
			}
			if changed == nil || tc.written {
				return
			}
			f.observe(f.Changed(changed, f.at)...)
			for _, d := range f.Decide(f.at.Add(time.Hour)) {
				if d.Resize != nil {
					t.Errorf("got decision %+v, want no resize again", d)
				}
			}
		})
	}
}

// TestNoEvictionForAPreemptorThatCannotBeAdmitted: an unwritten eviction for such a preemptor is not written.
func TestNoEvictionForAPreemptorThatCannotBeAdmitted(t *testing.T) {
	held := func(w *kueue.Workload) { w.Status.Admission = &kueue.Admission{ClusterQueue: "cq"} }
	on := func(node string) func(*kueue.Workload) {
		return func(w *kueue.Workload) {
			held(w)
			w.Status.Admission.PodSetAssignments = []kueue.PodSetAssignment{{Name: "main",
				TopologyAssignment: &kueue.TopologyAssignment{
					Levels:  []string{corev1.LabelHostname},
					Domains: []kueue.TopologyDomainAssignment{{Values: []string{node}, Count: 1}}}}}
		}
	}
	for name, tc := range map[string]struct {
		by      *kueue.Workload
		change  func(*kueue.Workload)
		uid     string
		lost    []string
		written bool
	}{
		"a running preemptor that has places on a lost node": {by: admissiontest.NewWorkload("b", 1, asked), uid: "b-uid",
			change: on("n2"), lost: []string{"n1", "n2"}, written: true},
		"a running preemptor that has other places by now": {by: admissiontest.NewWorkload("b", 1, asked), uid: "b-uid",
			change: on("n3"), lost: []string{"n1", "n2"}},
		"a preemptor that lost places, and then its quota": {by: admissiontest.NewWorkload("b", 1, asked), uid: "b-uid",
			lost: []string{"n1"}},
		"a waiting preemptor": {by: admissiontest.NewWorkload("b", 1, asked),
			uid: "b-uid", written: true},
		"a missing preemptor":               {uid: "b-uid"},
		"a later Workload of the same name": {by: admissiontest.NewWorkload("b", 1, asked), uid: "another"},
		"a deactivated preemptor": {by: admissiontest.NewWorkload("b", 1, asked), uid: "b-uid",
			change: func(w *kueue.Workload) { w.Spec.Active = ptr.To(false) }},
		"a preemptor with a missing queue": {by: admissiontest.NewWorkload("b", 1, asked), uid: "b-uid",
			change: func(w *kueue.Workload) { w.Spec.QueueName = "none" }},
		"a preemptor that was admitted meanwhile": {by: admissiontest.NewWorkload("b", 1, asked), uid: "b-uid", change: held},
		"a running preemptor that is to grow": {by: admissiontest.ElasticWorkload("b", 1, 3), uid: "b-uid",
			change: held, written: true},
		"no preemptor, because nodes failed": {written: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := admissiontest.NewWorkload("a", 2, asked)
			held(a)
			objects := []client.Object{a, admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq")}
			if tc.by != nil {
				if tc.change != nil {
					tc.change(tc.by)
				}
				objects = append(objects, tc.by)
			}
			w := admissiontest.NewWorld(t, objects...)
			decision := engine.Decision{Key: translate.KeyOf(a), UID: "a-uid", Generation: 1, Lost: tc.lost,
				Evict: &engine.Eviction{Cause: preempt.NodeFailures}}
			if tc.uid != "" {
				decision.Evict = &engine.Eviction{Preemptor: engine.Key{Namespace: "ns", Name: "b"}, PreemptorUID: tc.uid}
			}
			clock := clocktesting.NewFakePassiveClock(admissiontest.Now)
			var reported []engine.Event
			writer := NewWriter(w, w, clock, NewWriteBudget(clock), func(ev engine.Event) { reported = append(reported, ev) })
			writer.Take(decision)
			writer.Write(t.Context(), decision.Key)
			writer.Write(t.Context(), decision.Key)
			if got := workload.IsEvicted(w.Workload("a")); got != tc.written {
				t.Errorf("evicted = %v, want %v", got, tc.written)
			}
			if len(reported) != 1 {
				t.Fatalf("reported %+v, want one event", reported)
			}
			if _, ok := reported[0].(engine.Written); ok != tc.written {
				t.Errorf("reported %+v, want Written: %v", reported, tc.written)
			}
		})
	}
}
