package agents

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// TestAJobSetRestartsInPlace: when the command of one pod fails, all pods run theirs again in the same containers, and
// the status of the JobSet counts the in-place attempt as its API specifies.
func TestAJobSetRestartsInPlace(t *testing.T) {
	w := newWorld(t)
	js := w.agentJobSet(3, `echo "$RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT, run $TORCHELASTIC_RESTART_COUNT" >> $FOLDER/runs
		trap 'echo $RANK >> $FOLDER/stopped; exit 0' TERM
		[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0
		[ $RANK = 1 ] && { while [ ! -e $FOLDER/fail ]; do sleep 0.02; done; exit 3; }
		sleep 1000 & wait $!`)
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1, RestartStrategy: jobset.InPlaceRestart}
	w.Create(js)
	first := w.untilLines("runs", 3)
	pods := w.podsByUID()
	w.createFile("fail")
	runs := w.untilLines("runs", 6)[3:]
	done := w.untilJobSet("has completed", hasCondition(jobset.JobSetCompleted))

	for attempt, runs := range [][]string{first, runs} {
		slices.Sort(runs)
		where := runs[0][strings.Index(runs[0], " at "):]
		for rank, run := range runs {
			if !strings.HasPrefix(run, string(rune('0'+rank))+" of 3 at ") || !strings.HasSuffix(run, where) ||
				!strings.HasSuffix(run, "run "+string(rune('0'+attempt))) {
				t.Errorf("attempt %d wrote %q, want ranks 0 to 2 of 3 with one address and this attempt", attempt, runs)
			}
		}
	}
	if stopped := w.untilLines("stopped", 2); len(stopped) != 2 {
		t.Errorf("pods that were asked to stop: %q, want 2", stopped)
	}
	if s := done.Status; s.Restarts != 0 || s.CurrentInPlaceRestartAttempt == nil ||
		*s.CurrentInPlaceRestartAttempt != 1 ||
		s.PreviousInPlaceRestartAttempt == nil || *s.PreviousInPlaceRestartAttempt != 0 {
		t.Errorf("status has %d restarts, previous attempt %v and current attempt %v, want 0, 0 and 1", s.Restarts,
			ptr.Deref(s.PreviousInPlaceRestartAttempt, -1), ptr.Deref(s.CurrentInPlaceRestartAttempt, -1))
	}
	for uid, pod := range w.podsByUID() {
		if _, same := pods[uid]; !same || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("pod %s was recreated or its container was restarted, want neither", pod.Name)
		}
	}
}

// TestInPlaceRestartsCountAgainstMaxRestarts: a failure after maxRestarts in-place restarts fails the JobSet.
func TestInPlaceRestartsCountAgainstMaxRestarts(t *testing.T) {
	w := newWorld(t)
	js := w.agentJobSet(2, `echo run >> $FOLDER/runs-$RANK; [ $RANK = 0 ] && exit 3; sleep 1000`)
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1, RestartStrategy: jobset.InPlaceRestart}
	w.Create(js)
	w.untilJobSet("has failed", hasCondition(jobset.JobSetFailed))
	if runs := w.untilLines("runs-0", 2); len(runs) != 2 {
		t.Errorf("the command ran %d times, want 2", len(runs))
	}
}

// TestARoundSurvivesAKilledOperator: when the operator is killed while pods run in a round, no command is stopped. A
// failure after that still restarts the commands of all pods.
func TestARoundSurvivesAKilledOperator(t *testing.T) {
	w := newWorld(t)
	w.Create(w.agentJobSet(2, `echo "$RANK of $WORLD_SIZE" >> $FOLDER/runs
		trap 'echo $RANK >> $FOLDER/stopped; exit 0' TERM
		while [ ! -e $FOLDER/go ]; do sleep 0.02; done
		[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0
		[ $RANK = 1 ] && exit 3
		sleep 1000 & wait $!`))
	w.untilLines("runs", 2)
	w.Operator().Kill()
	w.createFile("go")
	runs := w.untilLines("runs", 4)
	w.untilJobSet("has completed", hasCondition(jobset.JobSetCompleted))
	slices.Sort(runs)
	if want := []string{"0 of 2", "0 of 2", "1 of 2", "1 of 2"}; !slices.Equal(runs, want) {
		t.Errorf("commands that ran: %q, want %q", runs, want)
	}
	if stopped := w.untilLines("stopped", 1); len(stopped) != 1 {
		t.Errorf("pods whose command was stopped: %q, want only the one that did not fail", stopped)
	}
}
