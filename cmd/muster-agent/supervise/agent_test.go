package supervise

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

var (
	start  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	budget = Budget{Failures: 2, InfrastructureFailures: 3, Steady: time.Minute}
	lost   = End{Code: 1, Stderr: []byte("torch.distributed.DistBackendError: NCCL error ... ncclRemoteError: A call failed possibly due to a network error")}
)

func part(number int64) protocol.Response {
	return protocol.Response{Round: &protocol.Round{Number: number, ID: "the-round", Rank: 1, Size: 2,
		MasterAddress: "10.0.0.1", MasterPort: 4000}}
}

// inRound returns an agent whose command is running.
func inRound(t *testing.T) *Agent {
	t.Helper()
	a := New(budget, 10*time.Second)
	if do := a.Begin(); do.Send.State != protocol.Waiting || !do.Fresh {
		t.Fatalf("first action = %+v, want a fresh request to wait", do)
	}
	if do := a.Answered(part(1), start); do.Start == nil || do.Send.State != protocol.Running ||
		do.Send.Master != "10.0.0.1:4000" || do.Send.ID != "the-round" {
		t.Fatalf("action for a new round = %+v, want the start of the command and a report", do)
	}
	return a
}

func TestFailuresOfTheProgramAreLimited(t *testing.T) {
	a := inRound(t)
	for round := int64(2); round <= 3; round++ {
		do := a.Ended(End{Code: 3}, start)
		if do.Exit || do.Send == nil || do.Send.Failure == nil || do.Send.Failure.ExitCode != 3 ||
			do.Send.Failure.Infrastructure || !do.Fresh {
			t.Fatalf("action within the budget = %+v, want a fresh request with exit code 3", do)
		}
		a.Answered(part(round), start)
	}
	if do := a.Ended(lost, start); do.Exit || !do.Send.Failure.Infrastructure {
		t.Fatalf("action after a lost connection = %+v, want an infrastructure failure", do)
	}
	a.Answered(part(4), start)
	if do := a.Ended(End{Code: 3}, start); !do.Exit || do.Code != 3 {
		t.Fatalf("action beyond the budget = %+v, want an exit with code 3", do)
	}
}

func TestConsecutiveLossesAreLimited(t *testing.T) {
	a := inRound(t)
	now := start
	for range 3 {
		if do := a.Ended(lost, now); do.Exit {
			t.Fatal("the agent exits after three consecutive losses, which are within the budget")
		}
		a.Answered(part(2), now)
	}
	now = now.Add(budget.Steady)
	if do := a.Ended(lost, now); do.Exit {
		t.Fatal("the agent exits, want losses counted from zero after a steady round")
	}
	for range 2 {
		a.Answered(part(3), now)
		if do := a.Ended(lost, now); do.Exit {
			t.Fatal("the agent exits within the budget")
		}
	}
	a.Answered(part(4), now)
	if do := a.Ended(lost, now); !do.Exit || do.Code != 1 {
		t.Fatalf("action after the fourth consecutive loss = %+v, want an exit with code 1", do)
	}
}

func TestFailureClassification(t *testing.T) {
	for name, tc := range map[string]struct {
		end            End
		hung           bool
		infrastructure bool
		message        string
	}{
		"exit code": {End{Code: 2}, false, false, "exit code 2"},
		"segmentation fault": {End{Signal: syscall.SIGSEGV}, false, false,
			"ended by a signal: segmentation fault"},
		"killed from outside": {End{Signal: syscall.SIGKILL}, false, true,
			"ended by a signal from outside: killed"},
		"killed when out of memory":         {End{Signal: syscall.SIGKILL, OutOfMemory: true}, false, false, "out of memory"},
		"a child killed when out of memory": {End{Code: 1, OutOfMemory: true}, false, false, "out of memory"},
		"killed because it hangs":           {End{Signal: syscall.SIGKILL}, true, false, "no heartbeat"},
		"a lost connection of gloo": {End{Code: 1,
			Stderr: []byte("[gloo/transport/tcp/pair.cc:534] Connection closed by peer")}, false, true,
			`lost its connection to the others: "gloo/transport/tcp/pair.cc:534] Connection closed"`},
		"an error that names no peer": {End{Code: 1, Stderr: []byte("ValueError: no connection")}, false,
			false, "exit code 1"},
	} {
		if got := tc.end.failure(tc.hung); got.Infrastructure != tc.infrastructure || got.Message != tc.message {
			t.Errorf("%s: failure = %+v", name, got)
		}
	}
}

// TestAHangCountsOnlyInItsRound: where one command hangs the others often do too, so a round may be over just when a
// command is killed for hanging. That says nothing about its next end.
func TestAHangCountsOnlyInItsRound(t *testing.T) {
	a := inRound(t)
	a.Hung()
	a.Answered(protocol.Response{Over: "another command has failed"}, start)
	if do := a.Ended(End{Signal: syscall.SIGKILL}, start); do.Send == nil || do.Send.Failure != nil {
		t.Fatalf("action after the end of a stopped command = %+v, want a request for the next round, without a failure", do)
	}
	a.Answered(part(2), start)
	if do := a.Ended(lost, start); do.Send == nil || do.Send.Failure == nil || !do.Send.Failure.Infrastructure {
		t.Fatalf("action after a lost connection = %+v, want an infrastructure failure", do)
	}
}

// TestCommandWithoutGraceIsKilled: a pod's grace period may be 0.
func TestCommandWithoutGraceIsKilled(t *testing.T) {
	a := New(budget, 0)
	a.Begin()
	a.Answered(part(1), start)
	if do := a.Answered(protocol.Response{Over: "over"}, start); do.Alarm <= 0 {
		t.Errorf("action at the end of a round = %+v, want an alarm after which the command is killed", do)
	}
}

// TestAgentThatComesTooLateEndsSuccessfully: its job waits for it to succeed.
func TestAgentThatComesTooLateEndsSuccessfully(t *testing.T) {
	finished := protocol.Response{Finished: "all have succeeded"}
	a := New(budget, time.Second)
	a.Begin()
	if do := a.Answered(finished, start); !do.Exit || do.Code != 0 || do.Start != nil {
		t.Errorf("action of a waiting agent = %+v, want an exit with code 0", do)
	}
	if do := inRound(t).Answered(finished, start); do.Exit || do.Signal != 0 {
		t.Errorf("action of an agent in a round = %+v, want none", do)
	}
}

func TestSidecarEndsWithItsRound(t *testing.T) {
	a := NewSidecar(42)
	a.Begin()
	if do := a.Answered(part(1), start); do.Start == nil {
		t.Fatalf("action for a new round = %+v, want the barrier lifted", do)
	}
	if do := a.Answered(protocol.Response{Over: "over"}, start); !do.Exit || do.Code != 42 {
		t.Fatalf("action after the round is over = %+v, want an exit with code 42", do)
	}
}

func TestEnvironmentKeepsTheUsersValues(t *testing.T) {
	got := Environment([]string{"PET_NPROC_PER_NODE=8", "RANK=7", "HOME=/root", "NCCL_ASYNC_ERROR_HANDLING=0"},
		Job{ID: "job", Endpoint: "muster:9444", Restarts: 2}, *part(5).Round)
	for _, want := range []string{"PET_NPROC_PER_NODE=8", "HOME=/root", "NCCL_ASYNC_ERROR_HANDLING=0", "RANK=1",
		"WORLD_SIZE=2", "LATTICE_ROUND=5", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=4000", "TORCHELASTIC_RESTART_COUNT=2",
		"NUM_LOCAL_DEVICES=1"} {
		if !slices.Contains(got, want) {
			t.Errorf("variable %s is missing in %q", want, got)
		}
	}
	if slices.Contains(got, "RANK=7") || slices.Contains(got, "PET_NPROC_PER_NODE=1") {
		t.Errorf("environment has duplicate variables: %q", got)
	}
}

// TestAtMostOneCommandRuns: under random inputs the agent starts no command while one runs, requests a round only when
// none runs, and does nothing after its exit. It can be terminated in any state.
func TestAtMostOneCommandRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := New(budget, time.Second)
		now, commandRuns, exited := start, false, false
		round := int64(0)
		take := func(do Do) {
			if exited && (do.Start != nil || do.Send != nil || do.Exit || do.Signal != 0) {
				t.Fatalf("action after the exit = %+v, want none", do)
			}
			if do.Send != nil && do.Send.State == protocol.Waiting && commandRuns {
				t.Fatal("the agent requests a round while its command runs")
			}
			if do.Start != nil {
				if commandRuns {
					t.Fatal("the agent starts a second command")
				}
				commandRuns = true
			}
			if do.Exit && commandRuns {
				t.Fatal("the agent exits while its command runs")
			}
			exited = exited || do.Exit
		}
		end := func(e End) {
			if commandRuns {
				commandRuns = false
				take(a.Ended(e, now))
			}
		}
		take(a.Begin())
		for range rapid.IntRange(0, 50).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0, 1:
				round++
				take(a.Answered(part(round), now))
			case 2:
				take(a.Answered(protocol.Response{Over: "over"}, now))
			case 3:
				end(End{Code: rapid.IntRange(0, 2).Draw(t, "code")})
			case 4:
				end(lost)
			case 5:
				take(a.Signalled(rapid.SampledFrom([]syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1}).
					Draw(t, "signal")))
			case 6:
				take(a.Late())
			case 7:
				take(a.Hung())
			}
			if exited {
				break
			}
		}
		if exited {
			return
		}
		take(a.Signalled(syscall.SIGTERM))
		end(End{Signal: syscall.SIGTERM})
		if !exited {
			t.Fatal("the agent does not exit although it was terminated and its command has ended")
		}
	})
}
