package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/engine"
)

// TestWhoStopsAQueueStopsWhatIsDecidedAlready: an admission that is not written yet is not written any more, and the
// engine, which may have heard of it by now, decides anew.
func TestWhoStopsAQueueStopsWhatIsDecidedAlready(t *testing.T) {
	newQueue, newLocal := func() *kueue.ClusterQueue { return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}} },
		func() *kueue.LocalQueue {
			return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "ns"}}
		}
	for name, tc := range map[string]struct {
		then     func(w *world)
		admitted bool
	}{
		"a queue that goes on admits": {func(w *world) {
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
		"a ClusterQueue that is gone": {func(w *world) { w.remove(newQueue()) }, false},
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
		"a LocalQueue that is gone": {func(w *world) { w.remove(newLocal()) }, false},
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
			want, told := []string(nil), engine.Event(engine.Failed{Key: d.decision.Key, UID: d.decision.UID})
			if tc.admitted {
				want, told = []string{"status Workload a"}, engine.Written{Key: d.decision.Key, UID: d.decision.UID, Version: versionOf(w.workload("a"))}
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

// TestWhoHoldsAWorkloadBackStopsWhatIsDecidedAlready: a gate or a deletion changes no spec, so the generation does not
// tell. The cache of the first try knows of it.
func TestWhoHoldsAWorkloadBackStopsWhatIsDecidedAlready(t *testing.T) {
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
			if diff := cmp.Diff([]engine.Event{engine.Failed{Key: d.decision.Key, UID: d.decision.UID}}, d.told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAStoppedQueueIsNotDecidedOnAgain: the refused write is tried again neither by the writer, nor by the engine once it
// has heard of the stop, which reaches it from the same cache.
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

// TestAWorkloadThatIsBeingDeletedDoesNotQueue: somebody's finalizer may keep it for long. One that holds quota holds it.
func TestAWorkloadThatIsBeingDeletedDoesNotQueue(t *testing.T) {
	w := newWorkload("a", 2, asked)
	w.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	if diff := cmp.Diff([]engine.Event{engine.WorkloadGone{Key: keyOf(w)}}, words().changed(w, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq"}
	if _, holds := words().changed(w, now)[0].(engine.WorkloadSet); !holds {
		t.Error("what it holds is forgotten")
	}
}
