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
	where := first.awaitOutput("part 0 of 2")
	if other := second.awaitOutput("part 1 of 2"); where[strings.Index(where,
		" at "):] != other[strings.Index(other, " at "):] {
		t.Errorf("members have different masters: %q and %q", where, other)
	}
	pid := first.cmd.Process.Pid
	third := o.run(2, works)
	first.awaitOutput("saved")
	first.awaitOutput("part 0 of 3")
	second.awaitOutput("part 1 of 3")
	third.awaitOutput("part 2 of 3")
	o.deletePod(0)
	second.awaitOutput("part 0 of 2")
	third.awaitOutput("part 1 of 2")
	first.awaitOutput("saved")
	if first.cmd.Process.Pid != pid {
		t.Error("the agent was restarted, want the same process")
	}
}

func TestCrashIsRestartedWithinTheBudget(t *testing.T) {
	o := newOperator(t, "2:2")
	started := t.TempDir() // marks the rounds that the other member has started, so that it joins each
	crashes := o.run(0, `echo "run $TORCHELASTIC_RESTART_COUNT of $RANK"
		until [ -e `+started+`/$TORCHELASTIC_RESTART_COUNT ]; do sleep 0.01; done; exit 7`, "LATTICE_MAX_RESTARTS=2")
	other := o.run(1, `touch `+started+`/$TORCHELASTIC_RESTART_COUNT; `+works)
	for _, run := range []string{"run 0 of 0", "run 1 of 0", "run 2 of 0"} {
		crashes.awaitOutput(run)
	}
	other.awaitOutput("round 2 is over: the command in pod job-worker-0 failed (exit code 7)")
	crashes.awaitExit(7)
}

func TestLossOfPeersIsNotChargedToTheBudget(t *testing.T) {
	o := newOperator(t, "1:1")
	a := o.run(0, `echo "run $TORCHELASTIC_RESTART_COUNT"; [ $TORCHELASTIC_RESTART_COUNT = 3 ] && exit 0
		echo "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.7]:4242" >&2; exit 1`, "LATTICE_MAX_RESTARTS=0")
	a.awaitOutput("run 3")
	a.awaitExit(0)
}

func TestAgentExitsWithTheCodeOfItsCommand(t *testing.T) {
	o := newOperator(t, "1:1")
	o.run(0, "exit 0").awaitExit(0)
	o.deletePod(0)
	o.run(1, "exit 41", "LATTICE_MAX_RESTARTS=0").awaitExit(41)
	o.deletePod(1)
	o.run(2, "kill -SEGV $$", "LATTICE_MAX_RESTARTS=0").awaitExit(128 + int(syscall.SIGSEGV))
	o.deletePod(2)
	o.run(3, "exec /nowhere/to/be/found", "LATTICE_MAX_RESTARTS=0").awaitExit(127)
}

func TestAgentThatComesAfterTheWorkIsDoneExitsWithSuccess(t *testing.T) {
	o := newOperator(t, "1:2")
	o.run(0, "exit 0").awaitExit(0)
	late := o.run(1, works)
	late.awaitOutput("the command need not run")
	late.awaitExit(0)
}

func TestFirstSIGTERMIsForwardedAndSecondKills(t *testing.T) {
	o := newOperator(t, "1:1")
	polite := o.run(0, `trap 'echo saved; exit 5' TERM; echo runs; sleep 1000 & wait $!`)
	polite.awaitOutput("runs")
	polite.signal(syscall.SIGTERM)
	polite.awaitOutput("saved")
	polite.awaitExit(5)
	o.deletePod(0)
	deaf := o.run(1, `trap 'echo heard' TERM; echo runs; while :; do sleep 1000 & wait $!; done`)
	deaf.awaitOutput("runs")
	deaf.signal(syscall.SIGTERM)
	deaf.awaitOutput("heard")
	deaf.signal(syscall.SIGTERM)
	deaf.awaitExit(128 + int(syscall.SIGKILL))
}

func TestOtherSignalsAreForwarded(t *testing.T) {
	o := newOperator(t, "1:1")
	a := o.run(0, `trap 'echo usr1; exit 0' USR1; echo runs; sleep 1000 & wait $!`)
	a.awaitOutput("runs")
	a.signal(syscall.SIGUSR1)
	a.awaitOutput("usr1")
	a.awaitExit(0)
}

func TestWaitingAgentExitsAtOnceOnSIGTERM(t *testing.T) {
	o := newOperator(t, "2:2")
	a := o.run(0, works)
	o.awaitRequest("uid-job-worker-0")
	a.signal(syscall.SIGTERM)
	a.awaitExit(128 + int(syscall.SIGTERM))
	a.wantNoOutput("part")
}

func TestCommandIsKilledAfterItsGracePeriod(t *testing.T) {
	o := newOperator(t, "1:2")
	deaf := o.run(0, `trap 'echo heard' TERM; echo "part $RANK of $WORLD_SIZE"; while :; do sleep 1000 & wait $!; done`,
		"MUSTER_CHECKPOINT_GRACE=300ms")
	deaf.awaitOutput("part 0 of 1")
	other := o.run(1, works)
	deaf.awaitOutput("heard")
	deaf.awaitOutput("killed")
	deaf.awaitOutput("part 0 of 2")
	other.awaitOutput("part 1 of 2")
}

func TestHangingCommandIsKilledAndRestarted(t *testing.T) {
	o := newOperator(t, "1:1")
	a := o.run(0, `echo "run $TORCHELASTIC_RESTART_COUNT"; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; touch "$LATTICE_HEARTBEAT_FILE"; sleep 1000`,
		"MUSTER_HANG_TIMEOUT=300ms")
	a.awaitOutput("run 0")
	a.awaitOutput("no heartbeat")
	a.awaitOutput("run 1")
	a.awaitExit(0)
}

func TestRoundContinuesWhileTheOperatorIsDown(t *testing.T) {
	o := newOperator(t, "2:3")
	first, second := o.run(0, works), o.run(1, works)
	first.awaitOutput("part 0 of 2")
	second.awaitOutput("part 1 of 2")
	o.stop()
	first.awaitOutput("cannot be asked")
	second.awaitOutput("cannot be asked")
	o.start()
	o.awaitRequest("uid-job-worker-0")
	o.awaitRequest("uid-job-worker-1")
	first.wantNoOutput("saved")
	second.wantNoOutput("saved")
	// The round continues, and later changes are observed.
	o.deletePod(1)
	o.run(2, works).awaitOutput("part 1 of 2")
	first.awaitOutput("part 0 of 2")
}

// TestDisconnectedMemberKeepsRunning: a member that only the operator cannot reach continues its round, and joins the
// next one once it is connected again.
func TestDisconnectedMemberKeepsRunning(t *testing.T) {
	o := newOperator(t, "2:3")
	proxy := newProxy(t, o.address)
	first, cut := o.run(0, works), o.run(1, works, "MUSTER_RENDEZVOUS="+proxy.address)
	first.awaitOutput("part 0 of 2")
	cut.awaitOutput("part 1 of 2")
	proxy.close()
	cut.awaitOutput("cannot be asked")
	first.wantNoOutput("saved")
	third := o.run(2, works)
	o.awaitRequest("uid-job-worker-2")
	cut.wantNoOutput("saved")
	proxy.open()
	cut.awaitOutput("saved")
	first.awaitOutput("saved")
	first.awaitOutput("part 0 of 3")
	cut.awaitOutput("part 1 of 3")
	third.awaitOutput("part 2 of 3")
}

// TestNoRoundBeginsWhileAnotherOperatorMayLead: agents of the same job may ask the other one.
func TestNoRoundBeginsWhileAnotherOperatorMayLead(t *testing.T) {
	o := newOperator(t, "1:1")
	o.deposed.Store(true)
	a := o.run(0, works)
	a.awaitOutput(errDeposed.Error())
	a.wantNoOutput("part")
	o.deposed.Store(false)
	a.awaitOutput("part 0 of 1")
}

func TestCrashWhileTheOperatorIsDownIsRestartedLater(t *testing.T) {
	o := newOperator(t, "1:1")
	stop := t.TempDir() + "/stop"
	a := o.run(0, `echo "run $TORCHELASTIC_RESTART_COUNT"; while [ ! -e `+stop+
		` ]; do sleep 0.02; done; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 1`)
	a.awaitOutput("run 0")
	o.stop()
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a.awaitOutput("run again with the next round")
	a.awaitOutput("cannot be asked")
	o.start()
	a.awaitOutput("run 1")
	a.awaitExit(0)
}

func TestKilledAgentRejoins(t *testing.T) {
	o := newOperator(t, "2:2")
	first, second := o.run(0, works), o.run(1, works)
	first.awaitOutput("part 0 of 2")
	second.awaitOutput("part 1 of 2")
	second.signal(syscall.SIGKILL)
	<-second.ended
	again := o.run(1, works) // as if its container were restarted in the same pod
	first.awaitOutput("saved")
	first.awaitOutput("part 0 of 2")
	again.awaitOutput("part 1 of 2")
}

func TestSlowMemberIsNotWaitedForBeyondTheTimeout(t *testing.T) {
	o := newOperator(t, "1:2")
	o.pod(1) // its agent has not started yet
	first := o.run(0, works)
	first.awaitOutput("part 0 of 1")
	slow := o.run(1, works)
	first.awaitOutput("part 0 of 2")
	slow.awaitOutput("part 1 of 2")
}

func TestNoProcessOfARoundIsLeftBehind(t *testing.T) {
	o := newOperator(t, "1:1")
	marker := t.TempDir() + "/lives"
	// The child is in a session of its own and holds a lock, as programs hold devices.
	a := o.run(0, `exec 9>`+marker+`; flock -n 9 || { echo "a process is left"; exit 9; }
		[ $TORCHELASTIC_RESTART_COUNT = 1 ] && { echo alone; exit 0; }
		setsid bash -c 'sleep 1000' & disown; sleep 0.1; exit 1`, "LATTICE_MAX_RESTARTS=1")
	a.awaitOutput("alone")
	a.awaitExit(0)
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
	a := o.runBy(filepath.Join(into, "muster-agent"), 0, `echo "at $PYTHONPATH"; ls ${PYTHONPATH%%:*}/muster/`,
		"PYTHONPATH=/of/the/image")
	if line := a.awaitOutput("at "); line != "at "+into+"/python:/of/the/image" {
		t.Errorf("search path of Python: %s", line)
	}
	a.awaitOutput("__init__.py")
	a.awaitExit(0)
}

// TestTorchIsPatchedOnlyWhereRequested: the patch is in the agent's add-on, and applies only where LATTICE_AUTOPATCH
// requests it.
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
		a := o.runBy(filepath.Join(into, "muster-agent"), 0,
			`python3 -c 'import sys, torch; print("followed", "muster._torch" in sys.modules)'`, "PYTHONPATH="+fake,
			"PYTHONDONTWRITEBYTECODE=1", "LATTICE_AUTOPATCH="+autopatch)
		if line := a.awaitOutput("followed"); line != want {
			t.Errorf("with LATTICE_AUTOPATCH=%q: got %s", autopatch, line)
		}
		a.awaitExit(0)
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
		t.Error("the barrier is lifted before the round began")
	}
	a := o.sidecar(0, "MUSTER_READY_FILE="+ready, "MUSTER_RESTART_EXIT_CODE=77")
	a.awaitOutput("round 1: rank 0 of 1")
	for deadline := time.Now().Add(testTimeout); !lifted(); {
		if time.Now().After(deadline) {
			t.Fatal("timed out waiting until the barrier is lifted")
		}
	}
	o.run(1, works)
	a.awaitOutput("round 1 is over")
	a.awaitExit(77)
}

func TestRequestWithoutTokenIsRefused(t *testing.T) {
	o := newOperator(t, "1:1")
	a := o.run(0, works, "MUSTER_RENDEZVOUS_TOKEN=/dev/null")
	if line := a.awaitOutput("cannot be asked"); !strings.Contains(line, "401") {
		t.Errorf("output = %q, want 401", line)
	}
	a.wantNoOutput("part")
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
			t.Error("the agent needs a dynamic loader and libraries, which images may not have")
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if const10MB := int64(10_000_000); info.Size() >= const10MB {
		t.Errorf("the agent has %d bytes, want less than 10 MB: check its imports", info.Size())
	}
}

// awaitRequest waits until the server has received a request of the pod's agent.
func (o *operator) awaitRequest(uid string) {
	o.t.Helper()
	o.awaitRequestAfter(uid, 0)
}

// awaitRequestAfter waits until it has received one that is newer than the one with this serial, and returns its
// serial.
func (o *operator) awaitRequestAfter(uid string, earlier uint64) (serial uint64) {
	o.t.Helper()
	o.registry.mu.Lock()
	found := o.registry.byPod[uid]
	o.registry.mu.Unlock()
	for deadline := time.Now().Add(testTimeout); ; {
		changed := found.changed()
		found.mu.Lock()
		serial = found.last[uid]
		found.mu.Unlock()
		if serial > earlier {
			return serial
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond): // a request does not notify
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("timed out waiting for a request of %s", uid)
		}
	}
}
