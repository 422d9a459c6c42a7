package simnode

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARunningPodContinuesThroughARestartOfTheProcess(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.start(1)
		w.create(podWith(lasting("1m")))
		w.pass(10 * time.Second)
		first.Stop()
		w.pass(20 * time.Second)
		before := w.pod("p")
		w.writes()

		w.start(1)
		if writes := w.writes(); len(writes) > 0 {
			t.Errorf("writes at the start = %v, want none", writes)
		}
		// The API stores whole seconds, so that only those count from here on.
		end := before.Status.StartTime.Add(time.Minute)
		w.pass(time.Until(end) - time.Millisecond)
		w.expectPhase("just before a minute since its recorded start", corev1.PodRunning)
		w.pass(time.Millisecond)
		w.expectPhase("a minute after its recorded start", corev1.PodSucceeded)
		after := w.pod("p")
		if after.Status.PodIP != before.Status.PodIP || !after.Status.StartTime.Equal(before.Status.StartTime) {
			t.Errorf("address %s and start %s became %s and %s", before.Status.PodIP, before.Status.StartTime,
				after.Status.PodIP, after.Status.StartTime)
		}
	})
}

func TestStepsDueWhileStoppedHappenAtTheStart(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.start(1)
		w.create(podWith(lasting("1m"), exiting("2")))
		first.Stop()
		w.pass(time.Hour)
		w.expectPhase("while the process is stopped", corev1.PodRunning)

		w.start(1)
		w.expectPhase("at the start", corev1.PodFailed)
		ended := w.pod("p").Status.ContainerStatuses[0].State.Terminated
		if ran := ended.FinishedAt.Sub(ended.StartedAt.Time); ran != time.Minute || ended.ExitCode != 2 {
			t.Errorf("the pod ran for %s and exited with %d, want 1m0s and 2", ran, ended.ExitCode)
		}
	})
}

func TestBackOffContinuesThroughARestartOfTheProcess(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.start(1)
		w.create(podWith(lasting("1s"), exiting("1"), restarting(corev1.RestartPolicyOnFailure)))
		w.pass(2 * time.Second) // it ran, was restarted at once, and ran again
		w.expectRestarts("in its back-off", 1)
		first.Stop()
		w.pass(5 * time.Second)

		w.start(1)
		again := w.pod("p").Status.ContainerStatuses[0].LastTerminationState.Terminated.FinishedAt.Add(10 * time.Second)
		w.pass(time.Until(again) - time.Millisecond)
		w.expectRestarts("just before the ten seconds are over", 1)
		w.pass(time.Millisecond)
		w.expectRestarts("ten seconds after its recorded exit", 2)
	})
}

func TestPodsChangedWhileStoppedAreHandledAtTheStart(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.start(1)
		w.create(podWith(named("p"), lasting("1h")))
		first.Stop()
		gone := w.pod("p")
		deleted(gone)
		w.updatePod(gone)
		w.create(podWith(named("new")))

		w.start(1)
		if w.hasPod("p") {
			t.Error("the deleted pod still exists")
		}
		if got := w.pod("new").Status.Phase; got != corev1.PodRunning {
			t.Errorf("phase of the pod that was bound meanwhile = %s, want Running", got)
		}
	})
}

func TestAPodThatEndedBeforeItsRemovalIsRemovedAtTheStart(t *testing.T) {
	// The process may be killed between the last write of the status and the removal.
	inWorld(t, func(w *world) {
		w.create(podWith(inPhase(corev1.PodFailed), deleted))
		w.start(1)
		if w.hasPod("p") {
			t.Error("the pod still exists")
		}
	})
}

func TestPodsOfBothRunsHaveDifferentAddresses(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.start(1)
		for i := range 20 {
			w.create(podWith(named(fmt.Sprint("old-", i)), lasting("1h")))
		}
		first.Stop()
		w.start(1)
		for i := range 20 {
			w.create(podWith(named(fmt.Sprint("new-", i)), lasting("1h")))
		}
		list, err := w.client.CoreV1().Pods("default").List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		owner := map[string]string{}
		for _, pod := range list.Items {
			if other, taken := owner[pod.Status.PodIP]; taken || pod.Status.PodIP == "" {
				t.Errorf("pods %s and %s have the same address %q", other, pod.Name, pod.Status.PodIP)
			}
			owner[pod.Status.PodIP] = pod.Name
		}
	})
}

func TestPodsOfASuperfluousNodeAreNotUpdated(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.start(2)
		w.create(podWith(on("sim-00001")))
		first.Stop()
		w.start(1)
		w.pass(time.Hour)
		w.expectPhase("an hour after its node was deleted", corev1.PodRunning)
	})
}

func TestStopCanBeRepeatedAndLeavesNodesAndPods(t *testing.T) {
	inWorld(t, func(w *world) {
		sim := w.start(1)
		w.create(podWith())
		sim.Stop()
		sim.Stop()
		w.pass(time.Hour)
		w.expectPhase("after the stop", corev1.PodRunning)
		w.node("sim-00000")
	})
}
