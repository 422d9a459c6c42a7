package rendezvous

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRoundGrowsAndShrinks(t *testing.T) {
	o := newOperator(t, "2:3")
	first, second := o.run(0, works), o.run(1, works)
	where := first.says("part 0 of 2")
	if other := second.says("part 1 of 2"); where[strings.Index(where, " at "):] != other[strings.Index(other, " at "):] {
		t.Errorf("they meet at different places: %q and %q", where, other)
	}
	pid := first.cmd.Process.Pid
	third := o.run(2, works)
	first.says("saved")
	first.says("part 0 of 3")
	second.says("part 1 of 3")
	third.says("part 2 of 3")
	o.deletePod(0)
	second.says("part 0 of 2")
	third.says("part 1 of 2")
	first.says("saved")
	if first.cmd.Process.Pid != pid {
		t.Error("the agent was started anew")
	}
}

func TestCrashIsRestartedWithinTheBudget(t *testing.T) {
	o := newOperator(t, "2:2")
	begun := t.TempDir() // the rounds that the other member has started, so that it misses none
	crashes := o.run(0, `echo "run $TORCHELASTIC_RESTART_COUNT of $RANK"
		until [ -e `+begun+`/$TORCHELASTIC_RESTART_COUNT ]; do sleep 0.01; done; exit 7`, "LATTICE_MAX_RESTARTS=2")
	other := o.run(1, `touch `+begun+`/$TORCHELASTIC_RESTART_COUNT; `+works)
	for _, run := range []string{"run 0 of 0", "run 1 of 0", "run 2 of 0"} {
		crashes.says(run)
	}
	other.says("round 2 is over: the command in pod job-worker-0 failed (exit code 7)")
	crashes.ends(7)
}

func TestLossOfPeersIsNotChargedToTheBudget(t *testing.T) {
	o := newOperator(t, "1:1")
	a := o.run(0, `echo "run $TORCHELASTIC_RESTART_COUNT"; [ $TORCHELASTIC_RESTART_COUNT = 3 ] && exit 0
		echo "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.7]:4242" >&2; exit 1`, "LATTICE_MAX_RESTARTS=0")
	a.says("run 3")
	a.ends(0)
}

func TestAgentExitsWithTheCodeOfItsCommand(t *testing.T) {
	o := newOperator(t, "1:1")
	o.run(0, "exit 0").ends(0)
	o.deletePod(0)
	o.run(1, "exit 41", "LATTICE_MAX_RESTARTS=0").ends(41)
	o.deletePod(1)
	o.run(2, "kill -SEGV $$", "LATTICE_MAX_RESTARTS=0").ends(128 + int(syscall.SIGSEGV))
	o.deletePod(2)
	o.run(3, "exec /nowhere/to/be/found", "LATTICE_MAX_RESTARTS=0").ends(127)
}

func TestFirstSIGTERMIsForwardedAndSecondKills(t *testing.T) {
	o := newOperator(t, "1:1")
	polite := o.run(0, `trap 'echo saved; exit 5' TERM; echo runs; sleep 1000 & wait $!`)
	polite.says("runs")
	polite.signal(syscall.SIGTERM)
	polite.says("saved")
	polite.ends(5)
	o.deletePod(0)
	deaf := o.run(1, `trap 'echo heard' TERM; echo runs; while :; do sleep 1000 & wait $!; done`)
	deaf.says("runs")
	deaf.signal(syscall.SIGTERM)
	deaf.says("heard")
	deaf.signal(syscall.SIGTERM)
	deaf.ends(128 + int(syscall.SIGKILL))
}

func TestOtherSignalsAreForwarded(t *testing.T) {
	o := newOperator(t, "1:1")
	a := o.run(0, `trap 'echo usr1; exit 0' USR1; echo runs; sleep 1000 & wait $!`)
	a.says("runs")
	a.signal(syscall.SIGUSR1)
	a.says("usr1")
	a.ends(0)
}

func TestWaitingAgentExitsAtOnceOnSIGTERM(t *testing.T) {
	o := newOperator(t, "2:2")
	a := o.run(0, works)
	o.awaitRequest("uid-job-worker-0")
	a.signal(syscall.SIGTERM)
	a.ends(128 + int(syscall.SIGTERM))
	a.quiet("part")
}

func TestCommandIsKilledAfterItsGracePeriod(t *testing.T) {
	o := newOperator(t, "1:2")
	deaf := o.run(0, `trap 'echo heard' TERM; echo "part $RANK of $WORLD_SIZE"; while :; do sleep 1000 & wait $!; done`, "MUSTER_CHECKPOINT_GRACE=300ms")
	deaf.says("part 0 of 1")
	other := o.run(1, works)
	deaf.says("heard")
	deaf.says("killed")
	deaf.says("part 0 of 2")
	other.says("part 1 of 2")
}

func TestHangingCommandIsKilledAndRestarted(t *testing.T) {
	o := newOperator(t, "1:1")
	a := o.run(0, `echo "run $TORCHELASTIC_RESTART_COUNT"; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; touch "$LATTICE_HEARTBEAT_FILE"; sleep 1000`, "MUSTER_HANG_TIMEOUT=300ms")
	a.says("run 0")
	a.says("no sign of life")
	a.says("run 1")
	a.ends(0)
}

func TestRoundContinuesWhileTheOperatorIsDown(t *testing.T) {
	o := newOperator(t, "2:3")
	first, second := o.run(0, works), o.run(1, works)
	first.says("part 0 of 2")
	second.says("part 1 of 2")
	o.stop()
	first.says("cannot be asked")
	second.says("cannot be asked")
	o.start()
	o.awaitRequest("uid-job-worker-0")
	o.awaitRequest("uid-job-worker-1")
	first.quiet("saved")
	second.quiet("saved")
	// The round goes on, and later changes are observed.
	o.deletePod(1)
	o.run(2, works).says("part 1 of 2")
	first.says("part 0 of 2")
}

// A member that only the operator cannot reach goes on in its round, and joins the next one once it is
// connected again.
func TestDisconnectedMemberKeepsRunning(t *testing.T) {
	o := newOperator(t, "2:3")
	proxy := newProxy(t, o.address)
	first, cut := o.run(0, works), o.run(1, works, "MUSTER_RENDEZVOUS="+proxy.address)
	first.says("part 0 of 2")
	cut.says("part 1 of 2")
	proxy.close()
	cut.says("cannot be asked")
	first.quiet("saved")
	third := o.run(2, works)
	o.awaitRequest("uid-job-worker-2")
	cut.quiet("saved")
	proxy.open()
	cut.says("saved")
	first.says("saved")
	first.says("part 0 of 3")
	cut.says("part 1 of 3")
	third.says("part 2 of 3")
}

func TestCrashWhileTheOperatorIsDownIsRestartedLater(t *testing.T) {
	o := newOperator(t, "1:1")
	stop := t.TempDir() + "/stop"
	a := o.run(0, `echo "run $TORCHELASTIC_RESTART_COUNT"; while [ ! -e `+stop+` ]; do sleep 0.02; done; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 1`)
	a.says("run 0")
	o.stop()
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a.says("run again with the next round")
	a.says("cannot be asked")
	o.start()
	a.says("run 1")
	a.ends(0)
}

func TestKilledAgentRejoins(t *testing.T) {
	o := newOperator(t, "2:2")
	first, second := o.run(0, works), o.run(1, works)
	first.says("part 0 of 2")
	second.says("part 1 of 2")
	second.signal(syscall.SIGKILL)
	<-second.ended
	again := o.run(1, works) // as if its container were restarted in the same pod
	first.says("saved")
	first.says("part 0 of 2")
	again.says("part 1 of 2")
}

func TestSlowMemberIsNotWaitedForBeyondTheTimeout(t *testing.T) {
	o := newOperator(t, "1:2")
	o.pod(1) // its agent has not started yet
	first := o.run(0, works)
	first.says("part 0 of 1")
	slow := o.run(1, works)
	first.says("part 0 of 2")
	slow.says("part 1 of 2")
}

func TestNoProcessOfARoundIsLeftBehind(t *testing.T) {
	o := newOperator(t, "1:1")
	marker := t.TempDir() + "/lives"
	// The child is in a session of its own and holds a lock, as programs hold devices.
	a := o.run(0, `exec 9>`+marker+`; flock -n 9 || { echo "somebody is left"; exit 9; }
		[ $TORCHELASTIC_RESTART_COUNT = 1 ] && { echo alone; exit 0; }
		setsid bash -c 'sleep 1000' & disown; sleep 0.1; exit 1`, "LATTICE_MAX_RESTARTS=1")
	a.says("alone")
	a.ends(0)
}

func TestAgentInstallsThePythonAddOn(t *testing.T) {
	path, err := agentBinary()
	if err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	for range 2 { // as an init container that is run twice
		if out, err := exec.Command(path, "install", into).CombinedOutput(); err != nil {
			t.Fatalf("installing: %v: %s", err, out)
		}
	}
	o := newOperator(t, "1:1")
	a := o.runBy(filepath.Join(into, "muster-agent"), 0, `echo "at $PYTHONPATH"; ls ${PYTHONPATH%%:*}/muster/`, "PYTHONPATH=/of/the/image")
	if line := a.says("at "); line != "at "+into+"/python:/of/the/image" {
		t.Errorf("Python looks %s", line)
	}
	a.says("__init__.py")
	a.ends(0)
}

// The patch comes from the agent's add-on, and applies only where LATTICE_AUTOPATCH asks for it.
func TestTorchIsPatchedOnlyWhereRequested(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the add-on is for Python, and there is no python3 in the PATH")
	}
	path, err := agentBinary()
	if err != nil {
		t.Fatal(err)
	}
	fake, err := filepath.Abs("../../python/fake")
	if err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	if out, err := exec.Command(path, "install", into).CombinedOutput(); err != nil {
		t.Fatalf("installing: %v: %s", err, out)
	}
	for autopatch, want := range map[string]string{"torch": "followed True", "": "followed False"} {
		o := newOperator(t, "1:1")
		a := o.runBy(filepath.Join(into, "muster-agent"), 0, `python3 -c 'import sys, torch; print("followed", "muster._torch" in sys.modules)'`,
			"PYTHONPATH="+fake, "PYTHONDONTWRITEBYTECODE=1", "LATTICE_AUTOPATCH="+autopatch)
		if line := a.says("followed"); line != want {
			t.Errorf("with LATTICE_AUTOPATCH=%q: %s", autopatch, line)
		}
		a.ends(0)
	}
}

func TestSidecarLiftsTheBarrierAndExitsWithItsRound(t *testing.T) {
	path, err := agentBinary()
	if err != nil {
		t.Fatal(err)
	}
	o := newOperator(t, "1:2")
	ready := filepath.Join(t.TempDir(), "ready")
	lifted := func() bool {
		probe := exec.Command(path, "ready")
		probe.Env = append(os.Environ(), "MUSTER_READY_FILE="+ready)
		return probe.Run() == nil
	}
	if lifted() {
		t.Error("the barrier is lifted before there is one")
	}
	a := o.sidecar(0, "MUSTER_READY_FILE="+ready, "MUSTER_RESTART_EXIT_CODE=77")
	a.says("round 1: rank 0 of 1")
	for deadline := time.Now().Add(testTimeout); !lifted(); {
		if time.Now().After(deadline) {
			t.Fatal("the barrier is not lifted")
		}
	}
	o.run(1, works)
	a.says("round 1 is over")
	a.ends(77)
}

func TestRequestWithoutTokenIsRefused(t *testing.T) {
	o := newOperator(t, "1:1")
	a := o.run(0, works, "MUSTER_RENDEZVOUS_TOKEN=/dev/null")
	if line := a.says("cannot be asked"); !strings.Contains(line, "401") {
		t.Errorf("it is told %q", line)
	}
	a.quiet("part")
}

func TestAgentBinaryIsSmallAndStatic(t *testing.T) {
	path, err := agentBinary()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	for _, program := range binary.Progs {
		if program.Type == elf.PT_INTERP {
			t.Error("the agent needs a loader and libraries, which images may not have")
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if const10MB := int64(10_000_000); info.Size() >= const10MB {
		t.Errorf("the agent has %d bytes: what does it import?", info.Size())
	}
}

// awaitRequest waits until the server has received a request of the pod's agent.
func (o *operator) awaitRequest(uid string) {
	o.t.Helper()
	o.registry.mu.Lock()
	found := o.registry.byPod[uid]
	o.registry.mu.Unlock()
	for deadline := time.Now().Add(testTimeout); ; {
		changed := found.changed()
		found.mu.Lock()
		heard := found.last[uid] != 0
		found.mu.Unlock()
		if heard {
			return
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond): // a request alone notifies nobody
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("%s was not heard", uid)
		}
	}
}
