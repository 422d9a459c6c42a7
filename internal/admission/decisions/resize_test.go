package decisions

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/workload"
)

// sizes returns what the Workload's status says of its size: pods, their usage, what is still in use, and the last
// resize.
func (n *nodeScene) sizes(name string) []string {
	n.T.Helper()
	w := n.World.Workload(name)
	if w.Status.Admission == nil {
		return nil
	}
	a := w.Status.Admission.PodSetAssignments[0]
	out := make([]string, 3)
	out[0] = string(rune('0' + *a.Count))
	cpu := a.ResourceUsage[corev1.ResourceCPU]
	out[1] = cpu.String()
	for _, r := range w.Status.ResourceRequests {
		uses := r.Resources[corev1.ResourceCPU]
		out[1] += " of " + uses.String()
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, muster.ResizedCondition); c != nil {
		out[2] = c.Reason + ": " + c.Message
	}
	return out
}

// wantSizes compares the sizes of the Workload; when describes the situation.
func (n *nodeScene) wantSizes(when, name string, want ...string) {
	n.T.Helper()
	if diff := cmp.Diff(want, n.sizes(name)); diff != "" {
		n.T.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// create creates a Workload.
func (n *nodeScene) create(w *kueue.Workload) {
	n.T.Helper()
	if err := n.World.Create(n.T.Context(), w); err != nil {
		n.T.Fatal(err)
	}
	n.observe(n.Changed(n.World.Workload(w.Name), n.at)...)
}

// shrunk reports, as the Workload's job would, that the surplus pods are gone.
func (n *nodeScene) shrunk(name string) {
	n.T.Helper()
	gone := n.World.Workload(name)
	workload.FinishShrink(gone, "main")
	if err := n.World.Status().Update(n.T.Context(), gone); err != nil {
		n.T.Fatal(err)
	}
	n.observe(n.Changed(n.World.Workload(name), n.at)...)
}

// TestAJobShrinksAndGrows: each resize is one status write, and the quota of surplus pods is held until the job reports
// that they are gone.
func TestAJobShrinksAndGrows(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), readyNode("b"), readyNode("c"), admissiontest.ElasticWorkload("large", 1, 3))
	f.decide()
	f.wantSizes("only Workload", "large", "3", "9", "")

	f.at = f.at.Add(time.Minute)
	one := admissiontest.NewWorkload("one", 1, admissiontest.Quantities("cpu", "3"))
	one.OwnerReferences = []metav1.OwnerReference{{APIVersion: "breezeml.ai/v1", Kind: "TrainingJob", Name: "one",
		UID: "job", Controller: ptr.To(true)}}
	f.create(one)
	f.decide()
	f.wantSizes("another Workload needs a node", "large", "2", "6 of 9",
		"Shrunk: pod set main from 3 to 2 pods for ns/trainingjob/one")
	if f.sizes("one") != nil {
		t.Error("the other Workload got quota that is still in use")
	}
	if got := len(f.on("large")); got != 2 {
		t.Errorf("large has places on %d nodes, want 2", got)
	}

	f.shrunk("large")
	f.decide()
	f.wantSizes("its last pod is gone", "large", "2", "6", "Shrunk: pod set main from 3 to 2 pods for ns/trainingjob/one")
	f.wantSizes("its last pod is gone", "one", "1", "3", "")

	f.observe(f.Deleted(f.World.Workload("one"))...)
	f.decide()
	f.wantSizes("the other Workload ended", "large", "3", "9", "Grown: pod set main from 2 to 3 pods")
	since := meta.FindStatusCondition(f.World.Workload("large").Status.Conditions,
		muster.ResizedCondition).LastTransitionTime
	if !since.Equal(ptr.To(metav1.NewTime(f.at))) {
		t.Errorf("ResizedAt = %s, want %s", since, f.at)
	}
}

// TestLoweringAJobShrinksIt: the status says why the job shrinks, and the resize is dropped if the job has been raised
// again meanwhile.
func TestLoweringAJobShrinksIt(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), readyNode("b"), readyNode("c"), admissiontest.ElasticWorkload("large", 2, 3))
	f.decide()
	f.wantSizes("only Workload", "large", "3", "9", "")

	says := func(pods int32) {
		w := f.World.Workload("large")
		workload.Want(w, pods)
		if err := f.World.Update(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	observe := func() {
		f.at = f.at.Add(time.Hour)
		f.observe(f.Changed(f.World.Workload("large"), f.at)...)
	}
	wants := func(pods int32) {
		says(pods)
		observe()
		f.decide()
	}
	wants(1)
	f.wantSizes("lowered to one pod, below the minimum of two", "large", "2", "6 of 9",
		"Shrunk: pod set main from 3 to 2 pods as its job has ended or asks for no more")
	f.shrunk("large")
	wants(2)
	f.wantSizes("raised to two pods", "large", "2", "6",
		"Shrunk: pod set main from 3 to 2 pods as its job has ended or asks for no more")
	says(0)
	observe()
	says(2)
	f.decide()
	f.wantSizes("lowered before its growth is written", "large", "2", "6",
		"Shrunk: pod set main from 3 to 2 pods as its job has ended or asks for no more")
	wants(0)
	f.wantSizes("raised to all pods", "large", "3", "9", "Grown: pod set main from 2 to 3 pods")
}

// TestAJobShrinksTwiceBeforeItsPodsAreGone: the status has one entry for what they use, as the API server demands.
func TestAJobShrinksTwiceBeforeItsPodsAreGone(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), readyNode("b"), readyNode("c"), admissiontest.ElasticWorkload("large", 1, 3))
	f.decide()
	for pods := int32(2); pods > 0; pods-- {
		w := f.World.Workload("large")
		workload.Want(w, pods)
		if err := f.World.Update(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		f.at = f.at.Add(time.Hour)
		f.observe(f.Changed(f.World.Workload("large"), f.at)...)
		f.decide()
		if got, want := f.sizes("large")[1], fmt.Sprintf("%d of 9", 3*pods); got != want {
			t.Errorf("lowered to %d pods it uses %s, want %s", pods, got, want)
		}
	}
}

// TestAResizeOutrunsTheCache: a job that has just grown shrinks again although the cache has it as it was before, with
// the very size that it is to have: that is no reason to believe that it has it.
func TestAResizeOutrunsTheCache(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.ElasticWorkload("a", 1, 3), admissiontest.NewClusterQueue("cq", "8"),
		admissiontest.NewLocalQueue("q", "cq"))
	sized := func(pods int32) *kueue.Admission {
		cpu := admissiontest.Quantities("cpu", strconv.Itoa(3*int(pods)))
		return &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{
			Name: "main", Count: &pods, ResourceUsage: cpu,
			Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "default"}}}}
	}
	hold := func(pods int32) {
		var a kueue.Workload
		a.Name, a.Namespace = "a", "ns"
		w.EditStatus(&a, func() {
			a.Status.Admission = sized(pods)
			meta.SetStatusCondition(&a.Status.Conditions,
				metav1.Condition{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, Reason: "QuotaReserved"})
		})
	}
	hold(1)
	d := newSingleWriterOf(w, engine.Decision{}) // its cache is from before it grew
	hold(2)
	given := admissionOf(w.Workload("a"))
	given.PodSets[0].Count, given.PodSets[0].Usage, given.PodSets[0].Surplus = 1, map[string]int64{"cpu": 3000},
		map[string]int64{"cpu": 3000}
	d.decision = engine.Decision{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "a-uid", Serial: 2, Generation: 1,
		Resize: &engine.Resize{Admission: given, PodSet: "main", From: 2, To: 1}}
	d.work(t, 2)
	if got := *w.Workload("a").Status.Admission.PodSetAssignments[0].Count; got != 1 {
		t.Errorf("size = %d, want 1", got)
	}
	want := []engine.Event{engine.Written{Key: d.decision.Key, UID: "a-uid", Serial: 2,
		Version: translate.VersionOf(w.Workload("a"))}}
	if diff := cmp.Diff(want, d.reported); diff != "" {
		t.Errorf("reported to the engine (-want +got):\n%s", diff)
	}
}
