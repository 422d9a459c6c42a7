package agents

import (
	"slices"
	"strings"
	"testing"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// TestAJobSetRestartsInPlace: a command fails, and all pods run theirs again, in the same
// containers, with the attempt counted as the public API says.
func TestAJobSetRestartsInPlace(t *testing.T) {
	w := newWorld(t)
	js := w.agents(3, `echo "$RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT, run $TORCHELASTIC_RESTART_COUNT" >> $FOLDER/runs
		trap 'echo $RANK >> $FOLDER/stopped; exit 0' TERM
		[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0
		[ $RANK = 1 ] && { while [ ! -e $FOLDER/fail ]; do sleep 0.02; done; exit 3; }
		sleep 1000 & wait $!`)
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1, RestartStrategy: jobset.InPlaceRestart}
	w.Create(js)
	first := w.said("runs", 3)
	pods := w.pods()
	w.write("fail")
	runs := w.said("runs", 6)[3:]
	done := w.untilJobSet("has completed", is(jobset.JobSetCompleted))

	for i, runs := range [][]string{first, runs} {
		slices.Sort(runs)
		where := runs[0][strings.Index(runs[0], " at "):]
		for rank, run := range runs {
			if !strings.HasPrefix(run, string(rune('0'+rank))+" of 3 at ") || !strings.HasSuffix(run, where) || !strings.HasSuffix(run, "run "+string(rune('0'+i))) {
				t.Errorf("attempt %d: %q", i, runs)
			}
		}
	}
	if stopped := w.said("stopped", 2); len(stopped) != 2 {
		t.Errorf("asked to stop were %q", stopped)
	}
	if s := done.Status; s.Restarts != 0 || s.CurrentInPlaceRestartAttempt == nil || *s.CurrentInPlaceRestartAttempt != 1 || *s.PreviousInPlaceRestartAttempt != 0 {
		t.Errorf("the status says %d restarts, attempts %v and %v", s.Restarts, s.PreviousInPlaceRestartAttempt, s.CurrentInPlaceRestartAttempt)
	}
	for uid, pod := range w.pods() {
		if _, same := pods[uid]; !same || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("pod %s was made anew, or its container was restarted", pod.Name)
		}
	}
}

// TestInPlaceRestartsCountAgainstMaxRestarts: the failure after the last restart is the end.
func TestInPlaceRestartsCountAgainstMaxRestarts(t *testing.T) {
	w := newWorld(t)
	js := w.agents(2, `echo run >> $FOLDER/runs-$RANK; [ $RANK = 0 ] && exit 3; sleep 1000`)
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1, RestartStrategy: jobset.InPlaceRestart}
	w.Create(js)
	w.untilJobSet("has failed", is(jobset.JobSetFailed))
	if runs := w.said("runs-0", 2); len(runs) != 2 {
		t.Errorf("the command ran %d times, want 2", len(runs))
	}
}

// TestARoundSurvivesAKilledOperator: the operator is killed while pods run together. Nobody is
// stopped for it, and a failure after it is seen by all.
func TestARoundSurvivesAKilledOperator(t *testing.T) {
	w := newWorld(t)
	w.Create(w.agents(2, `echo "$RANK of $WORLD_SIZE" >> $FOLDER/runs
		trap 'echo $RANK >> $FOLDER/stopped; exit 0' TERM
		while [ ! -e $FOLDER/go ]; do sleep 0.02; done
		[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0
		[ $RANK = 1 ] && exit 3
		sleep 1000 & wait $!`))
	w.said("runs", 2)
	w.KillOperator()
	w.write("go")
	runs := w.said("runs", 4)
	w.untilJobSet("has completed", is(jobset.JobSetCompleted))
	slices.Sort(runs)
	if want := []string{"0 of 2", "0 of 2", "1 of 2", "1 of 2"}; !slices.Equal(runs, want) {
		t.Errorf("runs %q, want %q", runs, want)
	}
	if stopped := w.said("stopped", 1); len(stopped) != 1 {
		t.Errorf("stopped were %q: some for the operator's end", stopped)
	}
}
