package soak

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/record"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
)

// operatorProcess is one of two operators, of which one leads.
type operatorProcess struct {
	*operator.Operator
	resume *time.Timer // while it is paused
}

// startOperator starts an operator in the place i.
func (r *round) startOperator(i int) {
	binary := cmp.Or(os.Getenv(testcluster.OperatorVariable), "../../bin/muster-operator")
	r.operators[i] = &operatorProcess{Operator: operator.Start(r.T, binary, r.Cluster,
		append(r.flags, "--decision-log="+r.decisionLog(i))...)}
}

// decisionLog is the path of the decision log of all operators that ran in the place i.
func (r *round) decisionLog(i int) string {
	return filepath.Join(r.ArtifactDir(), fmt.Sprintf("decisions-%d.log", i))
}

func (r *round) startOperators() {
	for i := range r.operators {
		r.startOperator(i)
	}
	for _, o := range r.operators {
		o.AwaitReady(r.T)
	}
}

// running reports whether the process has not ended.
func (o *operatorProcess) running() bool { return syscall.Kill(int(o.Process), 0) == nil }

// pause stops the process for so long.
func (o *operatorProcess) pause(lasts time.Duration) {
	_ = syscall.Kill(int(o.Process), syscall.SIGSTOP)
	o.resume = time.AfterFunc(lasts, func() { _ = syscall.Kill(int(o.Process), syscall.SIGCONT) })
}

// continues has the process go on if it is paused.
func (o *operatorProcess) continues() {
	if o.resume != nil && o.resume.Stop() {
		_ = syscall.Kill(int(o.Process), syscall.SIGCONT)
	}
}

// disturbOperators starts those anew that have ended, or kills or pauses one.
func (r *round) disturbOperators() {
	i := r.IntN(len(r.operators))
	kills, lasts := r.chance(50), time.Duration(500+r.IntN(8000))*time.Millisecond
	r.startEnded()
	if kills {
		r.note("kills operator %d", i)
		r.operators[i].End(syscall.SIGKILL)
		r.startOperator(i)
		return
	}
	r.note("pauses operator %d for %s", i, lasts)
	r.operators[i].continues()
	r.operators[i].pause(lasts)
}

// startEnded starts an operator in place of each that has ended, because another one led when it woke up.
func (r *round) startEnded() {
	for i, o := range r.operators {
		if !o.running() {
			r.note("operator %d has ended: starts another", i)
			r.startOperator(i)
		}
	}
}

// resumeOperators has both operators run.
func (r *round) resumeOperators() {
	for _, o := range r.operators {
		o.continues()
	}
	r.startEnded()
}

// restartOperators replaces both operators at once, and returns when the new ones have read the world.
func (r *round) restartOperators() {
	r.note("restarts both operators")
	for _, o := range r.operators {
		o.End(syscall.SIGKILL)
	}
	r.startOperators()
}

func (r *round) endOperators() {
	for _, o := range r.operators {
		o.End(syscall.SIGTERM)
	}
}

// expectReplay demands that all decisions follow from the decision logs alone, and that no job has waited although it
// could have been admitted.
func (r *round) expectReplay() {
	for i := range r.operators {
		file, err := os.Open(r.decisionLog(i))
		if err != nil {
			r.Fatal(err)
		}
		got, err := record.Replay(file)
		if err != nil || got.Difference != nil {
			r.Errorf("the replay of %s gives %+v, %v", file.Name(), got.Difference, err)
		}
		if len(got.Missed) > 0 {
			r.Errorf("by %s, %v waited although they could have been admitted", file.Name(), got.Missed)
		}
		if late := got.Late[engine.LateByDefect]; late > 0 {
			r.Errorf("by %s, %d promised starts were delayed without a cause", file.Name(), late)
		}
		r.Logf("%s: %d promised starts kept, delayed: %v", filepath.Base(file.Name()), got.Kept, got.Late)
		file.Close()
	}
}
