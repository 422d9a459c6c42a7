package decisions

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/reason"
)

// bindPatience and retryPatience are how long package translate waits before it believes kube-scheduler.
const bindPatience, retryPatience = 500 * time.Millisecond, 10*time.Second + 500*time.Millisecond

func TestAGangGetsReplacementNodes(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), readyNode("b"), readyNode("c"),
		admissiontest.NewWorkload("w", 2, admissiontest.Quantities("cpu", "3")))
	if got := f.decide(); len(got) != 1 || got[0].Admit == nil {
		t.Fatalf("got decisions %+v, want an admission", got)
	}
	before := f.on("w")
	if len(before) != 2 {
		t.Fatalf("places = %v, want two nodes", before)
	}
	var gone string
	for name := range before {
		gone = max(gone, name)
	}
	f.observe(f.Deleted(readyNode(gone))...)
	if got := f.decide(); len(got) != 1 || got[0].Replace == nil {
		t.Fatalf("got decisions %+v, want a replacement", got)
	}
	after := f.on("w")
	if after[gone] != 0 || len(after) != 2 {
		t.Errorf("places = %v, want two present nodes", after)
	}
	admissiontest.Expect(t, "writes", []string{"status Workload w", "status Workload w"}, f.Written())
}

func TestANodeThatStaysNotReadyIsReplaced(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), readyNode("b"),
		admissiontest.NewWorkload("w", 1, admissiontest.Quantities("cpu", "3")))
	f.decide()
	var silent string
	for name := range f.on("w") {
		silent = name
	}
	still := readyNode(silent)
	still.Status.Conditions[0].Status = corev1.ConditionUnknown
	f.observe(f.Changed(still, f.at)...)
	if got := f.decide(); len(got) != 0 {
		t.Fatalf("within the grace period: got decisions %+v, want none", got)
	}
	f.at = f.NextDue()
	f.observe(f.Overdue(f.at)...)
	if got := f.decide(); len(got) != 1 || got[0].Replace == nil {
		t.Fatalf("after the grace period: got decisions %+v, want a replacement", got)
	}
	if on := f.on("w"); on[silent] != 0 {
		t.Errorf("places = %v, want none on the unready node", on)
	}
}

func TestAGangThatCannotBeRepairedIsEvicted(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), readyNode("b"),
		admissiontest.NewWorkload("w", 2, admissiontest.Quantities("cpu", "3")))
	f.decide()
	f.observe(f.Deleted(readyNode("b"))...)
	if got := f.decide(); len(got) != 1 || got[0].Evict == nil {
		t.Fatalf("got decisions %+v, want an eviction", got)
	}
	evicted := f.World.Workload("w").Status.Conditions
	if last := admissiontest.Conditions(
		evicted)[2]; last != "Evicted=True NodeFailures: its places on node b are no longer valid, and there is no other capacity close enough for its pods" {
		t.Errorf("conditions = %q, want Evicted for NodeFailures", admissiontest.Conditions(evicted))
	}
}

func TestAPodThatKubeSchedulerRefusesGetsAnotherNode(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), readyNode("b"),
		admissiontest.NewWorkload("w", 1, admissiontest.Quantities("cpu", "3")))
	f.decide()
	var refused string
	for name := range f.on("w") {
		refused = name
	}
	pod := admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", ""))
	pod.Spec.NodeSelector[corev1.LabelHostname] = refused
	f.observe(f.Changed(pod, f.at)...)
	f.at = f.NextDue()
	f.observe(f.Overdue(f.at)...)
	if got := f.decide(); len(got) != 1 || got[0].Replace == nil {
		t.Fatalf("got decisions %+v, want a replacement", got)
	}
	if on := f.on("w"); on[refused] != 0 {
		t.Errorf("places = %v, want none on the node that was refused", on)
	}
}

// TestAReplacementWaitsForItsTerminatingPod: the place is free again when the terminating pod is gone, and the node is
// avoided only if kube-scheduler still refuses it long after that.
func TestAReplacementWaitsForItsTerminatingPod(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), readyNode("b"),
		admissiontest.NewWorkload("w", 1, admissiontest.Quantities("cpu", "3")))
	f.decide()
	var node string
	for name := range f.on("w") {
		node = name
	}
	leaving, comes := admissiontest.BoundPod("leaving", "w", node),
		admissiontest.Unschedulable(admissiontest.BoundPod("comes", "w", ""))
	for _, pod := range []*corev1.Pod{leaving, comes} {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		f.observe(f.Changed(pod, f.at)...)
	}
	for range 100 {
		f.at = f.NextDue()
		if events := f.Overdue(f.at); len(events) > 0 {
			t.Fatalf("after %s: got events %+v, want none", f.at.Sub(admissiontest.Now), events)
		}
	}
	gone := f.at
	f.observe(f.Deleted(leaving)...)
	for f.at.Before(gone.Add(2 * retryPatience)) {
		f.at = f.NextDue()
		f.observe(f.Overdue(f.at)...)
		if got := f.decide(); f.at.Before(gone.Add(10*time.Second)) && len(got) > 0 {
			t.Fatalf("%s after its place is free: got decisions %+v, want none", f.at.Sub(gone), got)
		}
		if f.NextDue().IsZero() {
			break
		}
	}
	if on := f.on("w"); on[node] != 0 {
		t.Errorf("places = %v, want another node: kube-scheduler has not bound the pod for %s", on, f.at.Sub(gone))
	}
}

// TestAnUnschedulablePodIsBelievedAfterARetry: the refusal may be out of date if a pod of the gang has just left the
// node, or left before the operator started. The same holds for constraints that only kube-scheduler checks, if that
// pod was observed.
func TestAnUnschedulablePodIsBelievedAfterARetry(t *testing.T) {
	const full, apart = "1 Insufficient cpu", "1 node(s) didn't match pod anti-affinity rules"
	for name, tc := range map[string]struct {
		says     string
		sawItEnd bool
		patience time.Duration
	}{
		"a full node": {full, true, 2 * retryPatience},
		"a node full by a pod that was not observed": {full, false, retryPatience},
		"a pod of the same workload blocks it":       {apart, true, 2 * retryPatience},
		"a pod of another workload blocks it":        {apart, false, bindPatience},
	} {
		t.Run(name, func(t *testing.T) {
			f := newNodeScene(t, readyNode("a"), admissiontest.NewWorkload("w", 1, admissiontest.Quantities("cpu", "3")))
			f.decide()
			leaving := admissiontest.BoundPod("leaving", "w", "a")
			if tc.sawItEnd {
				f.observe(f.Changed(leaving, f.at)...)
			}
			comes := admissiontest.Saying(admissiontest.Unschedulable(admissiontest.BoundPod("comes", "w", "")),
				"0/2 nodes are available: "+tc.says+", 1 node(s) didn't match Pod's node affinity/selector. preemption: none.")
			comes.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "a"}
			f.observe(f.Changed(comes, f.at)...)
			if tc.sawItEnd {
				f.observe(f.Deleted(leaving)...)
			}
			for f.at = f.NextDue(); f.at.Before(admissiontest.Now.Add(tc.patience)); f.at = f.NextDue() {
				if reported := f.Overdue(f.at); reported != nil {
					t.Fatalf("after %s: got events %+v, want none", f.at.Sub(admissiontest.Now), reported)
				}
			}
			want := []engine.Event{engine.PodUnschedulable{Workload: engine.Key{Namespace: "ns", Name: "w"},
				Node: "a", Why: tc.says}}
			if diff := cmp.Diff(want, f.Overdue(f.at)); diff != "" || !f.at.Equal(admissiontest.Now.Add(tc.patience)) {
				t.Errorf("events after %s (-want +got):\n%s", f.at.Sub(admissiontest.Now), diff)
			}
		})
	}
}

// TestOnlyNodesLackingAPodAreReported: a pod that may go to any node of its Job is refused by all of them; those that
// already have all their pods must refuse it.
func TestOnlyNodesLackingAPodAreReported(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), readyNode("b"),
		admissiontest.NewWorkload("w", 2, admissiontest.Quantities("cpu", "3")))
	f.decide()
	f.observe(f.Changed(admissiontest.BoundPod("there", "w", "a"), f.at)...)
	pod := admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", ""))
	pod.Spec.NodeSelector = nil
	pod.Spec.Affinity = admissiontest.ToHosts("a", "b")
	f.observe(f.Changed(pod, f.at)...)
	f.at = f.NextDue()
	want := []engine.Event{engine.PodUnschedulable{Workload: engine.Key{Namespace: "ns", Name: "w"}, Node: "b"}}
	if diff := cmp.Diff(want, f.Overdue(f.at)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestForeignPodsOccupyNodes(t *testing.T) {
	f := newNodeScene(t, readyNode("a"), readyNode("b"),
		admissiontest.NewWorkload("w", 2, admissiontest.Quantities("cpu", "3")))
	foreign := admissiontest.BoundPod("other", "", "b")
	foreign.Spec.Containers[0].Resources.Requests = admissiontest.Quantities("cpu", "2")
	f.observe(f.Changed(foreign, f.at)...)
	if got := f.decide(); len(got) != 1 || got[0].Why.Code != "TopologyPlacementFailed" {
		t.Fatalf("got decisions %+v, want TopologyPlacementFailed", got)
	}
	f.observe(f.Changed(admissiontest.Ended(foreign), f.at)...)
	if got := f.decide(); len(got) != 1 || got[0].Admit == nil {
		t.Fatalf("got decisions %+v, want an admission", got)
	}
	if diff := cmp.Diff(map[string]int32{"a": 1, "b": 1}, f.on("w")); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func TestGangsLargerThanAnyNodeAreAdmittedWithNodesOnDemand(t *testing.T) {
	queue := admissiontest.NewClusterQueue("cq", "100")
	metav1.SetMetaDataAnnotation(&queue.ObjectMeta, "muster.dev/nodes-on-demand", "true")
	f := newNodeScene(t, readyNode("a"), admissiontest.NewWorkload("w", 1, admissiontest.Quantities("cpu", "9")))
	if got := f.decide(); len(got) != 1 || got[0].Admit != nil {
		t.Fatalf("got decisions %+v, want no admission", got)
	}
	f.observe(f.Changed(queue, f.at)...)
	if got := f.decide(); len(got) != 1 || got[0].Admit == nil {
		t.Fatalf("got decisions %+v, want an admission", got)
	}
	if a := f.World.Workload("w").Status.Admission.PodSetAssignments[0]; a.TopologyAssignment != nil {
		t.Errorf("places = %+v, want none", a.TopologyAssignment)
	}
}

// TestNoPreemptionForWhatATerminatingWorkloadReleases: a terminating Workload holds quota and node until its pods are
// gone, which will happen without a preemption.
func TestNoPreemptionForWhatATerminatingWorkloadReleases(t *testing.T) {
	queue := admissiontest.NewClusterQueue("cq", "8")
	queue.Generation, queue.Spec.Preemption = 2,
		&kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority}
	f := newNodeScene(t, readyNode("a"), readyNode("b"), admissiontest.NewWorkload("going", 1,
		admissiontest.Quantities("cpu", "4")), admissiontest.NewWorkload("staying", 1, admissiontest.Quantities("cpu", "4")))
	f.observe(f.Changed(queue, f.at)...)
	f.decide()
	f.observe(f.Changed(admissiontest.BoundPod("going-0", "going", slices.Collect(maps.Keys(f.on("going")))[0]), f.at)...)
	// It was also evicted for its node and deleted before its pods were gone: it will not be admitted again.
	for _, evicted := range []bool{false, true} {
		going := f.World.Workload("going")
		if going.DeletionTimestamp = ptr.To(metav1.NewTime(f.at)); evicted {
			going.Status.Conditions = append(going.Status.Conditions, metav1.Condition{
				Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: kueue.WorkloadEvictedDueToNodeFailures})
		}
		f.observe(f.Changed(going, f.at)...)
		high := admissiontest.NewWorkload("high", 1, admissiontest.Quantities("cpu", "4"))
		high.Spec.Priority = ptr.To[int32](1)
		f.observe(f.Changed(high, f.at)...)
		if got := f.Decide(f.at); len(got) != 1 || got[0].Evict != nil ||
			got[0].Why.Code != reason.WaitingForPreemptedWorkloads {
			t.Fatalf("evicted %t: got decisions %+v, want a wait for preempted workloads", evicted, got)
		}
		f.observe(f.Deleted(high)...)
	}
}
