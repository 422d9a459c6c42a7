package replicas

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRestartDelaysDoubleUpToFiveMinutes(t *testing.T) {
	want := []time.Duration{0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	for n, seconds := range want {
		if got := delayOf(int32(n)); got != seconds*time.Second {
			t.Errorf("restart %d waits %s, want %s", n, got, seconds*time.Second)
		}
	}
	if got := delayOf(1 << 30); got != 5*time.Minute {
		t.Errorf("restart %d waits %s, want 5 minutes", 1<<30, got)
	}
}

// ran makes the ended pod have run for so long.
func (p podBuilder) ran(long time.Duration) podBuilder {
	ended := p.Status.ContainerStatuses[0].State.Terminated
	ended.StartedAt = metav1.NewTime(ended.FinishedAt.Add(-long))
	return p
}

// TestRestartsWaitForTheirDelay: the delay of a replica follows from its restarts and its pod, so that it
// is the same for an operator that has just started.
func TestRestartsWaitForTheirDelay(t *testing.T) {
	const name = "job-worker-0"
	rejected := podOf(name, 3).bound()
	rejected.Status = corev1.PodStatus{Phase: corev1.PodFailed,
		Conditions: []corev1.PodCondition{{LastTransitionTime: metav1.NewTime(now.Add(-time.Second))}}}
	for what, test := range map[string]struct {
		record Record
		pod    podBuilder
		// wait is how long the restart is delayed from now on.
		wait    time.Duration
		settled int32
	}{
		"the first restart": {Record{}, podOf(name, 0).ended(0, 0), 0, 0},
		"the second":        {Record{Restarts: 1}, podOf(name, 1).ended(0, 0), time.Second, 0},
		"the fourth":        {Record{Restarts: 3}, podOf(name, 3).ended(1, 0), 4 * time.Second, 0},
		"the fourth, after a part of its delay": {Record{Restarts: 3},
			podOf(name, 3).ended(1, -3*time.Second), time.Second, 0},
		"the fourth, after its delay": {Record{Restarts: 3}, podOf(name, 3).ended(1, -4*time.Second), 0, 0},
		"the hundredth":               {Record{Restarts: 99}, podOf(name, 99).ended(1, 0), 5 * time.Minute, 0},
		"one after ten minutes": {Record{Restarts: 99},
			podOf(name, 99).ended(1, 0).ran(10 * time.Minute), 0, 99},
		"one after nine minutes": {Record{Restarts: 99}, podOf(name, 99).ended(1, 0).ran(9 * time.Minute),
			5 * time.Minute, 0},
		"the second since a pod ran long": {Record{Restarts: 100, Settled: 99}, podOf(name, 100).ended(1, 0),
			time.Second, 99},
		"the third since a pod ran long": {Record{Restarts: 101, Settled: 99}, podOf(name, 101).ended(1, 0),
			2 * time.Second, 99},
		"one of a pod that its node rejected": {Record{Restarts: 3}, rejected, 3 * time.Second, 0},
		"one of a pod that is being deleted": {Record{Restarts: 3},
			podOf(name, 3).ended(1, 0).deleted(2 * time.Second), 0, 0},
		"one on a node with a clock in the future": {Record{Restarts: 3}, podOf(name, 3).ended(1, time.Hour), 0, 0},
		"one whose status was edited to fewer":     {Record{Restarts: 1, Settled: 99}, podOf(name, 1).ended(1, 0), 0, 99},
		"one whose annotation was edited to a more": {Record{Restarts: 1, Settled: 1}, podOf(name, 2).ended(1, 0),
			2 * time.Second, 0},
	} {
		t.Run(what, func(t *testing.T) {
			look := func() *Roster {
				return Observe("job", []Group{{Name: "worker", Count: 1,
					Restart: Restart{OnFailure: true, OnSuccess: true, Limit: 1000}}},
					func(string, int32) Record { return test.record }, []*corev1.Pod{test.pod.Pod})
			}
			if test.wait > 0 {
				roster := look()
				before, next := roster.Restart(now)
				if r := roster.Get("worker", 0); len(before) > 0 || !r.NeedsRestart || r.Final() ||
					len(roster.Outdated())+len(roster.Missing()) > 0 {
					t.Errorf("restarted = %v, replica = %+v: it does not wait", before, r)
				}
				if want := now.Add(test.wait); !next.Equal(want) {
					t.Errorf("the next restart is due at %s, want %s", next, want)
				}
			}
			roster := look()
			restarts := roster.Get("worker", 0).Restarts
			before, next := roster.Restart(now.Add(test.wait))
			if r := roster.Get("worker", 0); len(before) != 1 || !next.IsZero() || r.Restarts != restarts+1 ||
				r.Settled != test.settled {
				t.Errorf("restarted = %v, next = %s, replica = %+v; want it restarted, and settled at %d", before,
					next, r, test.settled)
			}
		})
	}
}

// TestARestartThatIsRecordedOfAPodThatIsGoneDoesNotWait: nothing says when the pod ended.
func TestARestartThatIsRecordedOfAPodThatIsGoneDoesNotWait(t *testing.T) {
	roster := Observe("job", []Group{{Name: "worker", Count: 1, Restart: Restart{OnFailure: true, Limit: 1000}}},
		func(string, int32) Record { return Record{Restarts: 9, Phase: Failed} }, nil)
	if before, next := roster.Restart(now); len(before) != 1 || !next.IsZero() {
		t.Errorf("restarted = %v, next = %s, want one restarted", before, next)
	}
}

// TestLostPodsAreReplacedAtOnce: the failure of a node says nothing about the program.
func TestLostPodsAreReplacedAtOnce(t *testing.T) {
	lost := podOf("job-worker-0", 9).ended(137, 0)
	lost.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	roster := Observe("job", []Group{{Name: "worker", Count: 1, Restart: Restart{OnFailure: true, Limit: 1000}}},
		func(string, int32) Record { return Record{Restarts: 9} }, []*corev1.Pod{lost.Pod})
	if got, _ := roster.RestartDisrupted(time.Now()); len(got) != 1 {
		t.Errorf("pods to replace = %v, want the lost one", got)
	}
	if before, next := roster.Restart(now); len(before) > 0 || !next.IsZero() {
		t.Errorf("restarted = %v, next = %s, want neither", before, next)
	}
}
