package simnode

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

var podResource = schema.GroupResource{Resource: "pods"}

func named(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Name, p.UID = name, types.UID("uid-"+name) }
}

func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

func TestABoundPodRunsForItsTimeInTwoWrites(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(1)
		w.create(podWith(lasting("90s")))
		w.expectPhase("once bound", corev1.PodRunning)
		w.writes()
		w.pass(90*time.Second - time.Millisecond)
		w.expectPhase("just before its time", corev1.PodRunning)
		if writes := w.writes(); len(writes) > 0 {
			t.Errorf("writes during the run = %v, want none", writes)
		}
		w.pass(time.Millisecond)
		w.expectPhase("at its time", corev1.PodSucceeded)
		if writes := w.writes(); !slices.Equal(writes, []string{"patch pods/status"}) {
			t.Errorf("writes at the end = %v, want one of the status", writes)
		}
	})
}

func TestIdleClusterWritesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(50)
		w.create(podWith(lasting("100h")))
		w.writes()
		w.pass(24 * time.Hour)
		if writes := w.writes(); len(writes) > 0 {
			t.Errorf("writes in a day without events = %v, want none", writes)
		}
	})
}

func TestPodsOfOtherNodesAreLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.createNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real"}})
		w.start(1)
		w.create(podWith(on("real")))
		w.pass(time.Hour)
		w.expectPhase("an hour later", corev1.PodPending)
	})
}

func TestANodeThatATestMadeIsDrivenByItsLabel(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(0)
		w.create(podWith(on("odd")))
		w.createNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "odd",
			Labels: map[string]string{LabelSimulated: "true"}}})
		w.expectPhase("once its node is there", corev1.PodRunning)
	})
}

func TestLivePodsHaveDifferentAddressesAndThatOfTheirNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(2)
		w.create(podWith(named("a"), on("sim-00000")))
		w.create(podWith(named("b"), on("sim-00001")))
		a, b := w.pod("a").Status, w.pod("b").Status
		if a.PodIP == "" || b.PodIP == "" || a.PodIP == b.PodIP {
			t.Errorf("pod addresses = %q and %q, want different ones", a.PodIP, b.PodIP)
		}
		if a.HostIP != "198.18.0.1" || b.HostIP != "198.18.0.2" {
			t.Errorf("host addresses = %q and %q, want those of the nodes", a.HostIP, b.HostIP)
		}
	})
}

func TestADeletedPodEndsAtOnceAndIsRemovedForGood(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(1)
		w.create(podWith(lasting("1h")))
		w.pass(time.Minute)
		w.writes()

		var options metav1.DeleteOptions
		w.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			options = action.(clienttesting.DeleteActionImpl).DeleteOptions
			return false, nil, nil
		})
		pod := w.pod("p")
		deleted(pod)
		w.updatePod(pod)

		if w.hasPod("p") {
			t.Error("the pod still exists")
		}
		want := []string{"update pods", "patch pods/status", "delete pods"}
		if diff := cmp.Diff(want, w.writes()); diff != "" {
			t.Errorf("writes, the first by the user (-want +got):\n%s", diff)
		}
		wantOptions := metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0),
			Preconditions:      &metav1.Preconditions{UID: ptr.To(types.UID("uid-p"))},
		}
		wantOptions.TypeMeta = options.TypeMeta
		if diff := cmp.Diff(wantOptions, options); diff != "" {
			t.Errorf("options of the deletion (-want +got):\n%s", diff)
		}
	})
}

func TestThePodsOfADeletedNodeStayAsTheyAre(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(1)
		w.create(podWith())
		node := w.node("sim-00000")
		w.deleteNode("sim-00000")
		w.pass(time.Hour)
		w.expectPhase("an hour after its node went", corev1.PodRunning)

		node.ResourceVersion = ""
		w.createNode(node)
		w.expectPhase("once its node is back", corev1.PodSucceeded)
	})
}

func TestThePodsOfALostNodeStayAsTheyAreUntilItIsBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(1)
		w.create(podWith())
		w.setReady("sim-00000", corev1.ConditionUnknown)
		w.pass(time.Hour)
		w.expectPhase("an hour after its node was lost", corev1.PodRunning)

		w.setReady("sim-00000", corev1.ConditionTrue)
		w.expectPhase("once its node is back", corev1.PodSucceeded)
	})
}

func TestPodsOfANotReadyNodeAreStillUpdated(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(1)
		w.create(podWith())
		w.setReady("sim-00000", corev1.ConditionFalse)
		w.pass(5 * time.Second)
		w.expectPhase("at its time", corev1.PodSucceeded)
	})
}

func TestFailedWriteIsRetriedAndReportedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(1)
		w.failing("patch", "pods", 5, apierrors.NewServerTimeout(podResource, "patch", 1))
		w.create(podWith(named("a")))
		w.create(podWith(named("b")))
		w.pass(time.Minute)
		for _, name := range []string{"a", "b"} {
			if got := w.pod(name).Status.Phase; got != corev1.PodSucceeded {
				t.Errorf("final phase of pod %s = %s, want Succeeded", name, got)
			}
		}
		if len(w.logged) != 2 || w.logged[1] != "simulated pods: writes succeed again" {
			t.Errorf("logged %q, want one line for the failures and one for their end", w.logged)
		}
	})
}

func TestWriteForAnOutdatedPodIsDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(1)
		w.failing("patch", "pods", 1, apierrors.NewConflict(podResource, "p", nil))
		w.create(podWith())
		w.expectPhase("after the conflict", corev1.PodPending)

		pod := w.pod("p")
		pod.Labels = map[string]string{"changed": "by another"}
		w.updatePod(pod)
		w.expectPhase("after the event of the other's write", corev1.PodRunning)
		if len(w.logged) > 0 {
			t.Errorf("logged %q about a conflict, which is not a failure", w.logged)
		}
	})
}

func TestPatchAppliesOnlyToTheDecidedVersion(t *testing.T) {
	pod := podWith()
	patch, err := statusPatch(pod, &corev1.PodStatus{Phase: corev1.PodFailed, Conditions: pod.Status.Conditions})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"resourceVersion":"1","uid":"uid-p"},"status":{"phase":"Failed"}}`
	if string(patch) != want {
		t.Errorf("patch:\n got %s\nwant %s", patch, want)
	}
}

func TestDeletedPodsAreForgotten(t *testing.T) {
	inWorld(t, func(w *world) {
		d := newDriver(w.client, quiet)
		sim := &Cluster{}
		ctx := w.t.Context()
		w.createNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sim-00000",
			Labels: map[string]string{LabelSimulated: "true"}}})
		if err := d.start(ctx, &sim.running); err != nil {
			t.Fatal(err)
		}
		w.create(podWith(named("ends")))
		w.create(podWith(named("deleted"), lasting("1h")))
		w.pass(time.Minute)
		if err := w.client.CoreV1().Pods("default").Delete(ctx, "deleted", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(d.steps.at)+len(d.addresses.owned)+len(d.addresses.taken) > 0 {
			t.Errorf("state is left of deleted pods: steps of %d, addresses of %d", len(d.steps.at), len(d.addresses.owned))
		}
	})
}
