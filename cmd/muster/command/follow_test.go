package command

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestUnauthorizedMessageSaysToStartAgain(t *testing.T) {
	want := "muster: no such token: log in again and restart this command; the output shows the last known state"
	if got := answerMessage(apierrors.NewUnauthorized("no such token")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestWatchingALargeClusterLeavesTimeBetweenRefreshes: each one takes a third of a second with 10,000 jobs.
func TestWatchingALargeClusterLeavesTimeBetweenRefreshes(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: minRefreshInterval, 10 * time.Millisecond: minRefreshInterval, 300 * time.Millisecond: 1200 * time.Millisecond,
	} {
		if pause := pauseAfter(took); pause != want {
			t.Errorf("the pause after a refresh of %s is %s, want %s", took, pause, want)
		}
	}
}

// TestQueuesThatMayNotBeListedAreNotReported among the kinds of jobs that are left out: without them only time limits
// are missing.
func TestQueuesThatMayNotBeListedAreNotReported(t *testing.T) {
	for want, kinds := range map[string][]string{
		"": {"clusterqueues"},
		"muster: you may not list vcjobs: these jobs are left out, unless they have Workloads": {"vcjobs", "clusterqueues"},
	} {
		got := ""
		reportUnseen(func(line string) { got = line }, kinds)
		if got != want {
			t.Errorf("of %v it is reported %q, want %q", kinds, got, want)
		}
	}
}
