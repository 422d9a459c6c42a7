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
	budget = Budget{Failures: 2, Losses: 3, Steady: time.Minute}
	lost   = End{Code: 1, Stderr: []byte("torch.distributed.DistBackendError: NCCL error ... ncclRemoteError: A call failed possibly due to a network error")}
)

func part(number int64) protocol.Response {
	return protocol.Response{Round: &protocol.Round{Number: number, ID: "the-round", Rank: 1, Size: 2, MasterAddress: "10.0.0.1", MasterPort: 4000}}
}

// inRound returns an agent whose command is running.
func inRound(t *testing.T) *Agent {
	t.Helper()
	a := New(budget, 10*time.Second)
	if do := a.Begin(); do.Say.State != protocol.Waiting || !do.Fresh {
		t.Fatalf("it begins with %+v", do)
	}
	if do := a.Answered(part(1), start); do.Start == nil || do.Say.State != protocol.Running || do.Say.Master != "10.0.0.1:4000" || do.Say.ID != "the-round" {
		t.Fatalf("its round begins with %+v", do)
	}
	return a
}

func TestFailuresOfTheProgramAreLimited(t *testing.T) {
	a := inRound(t)
	for round := int64(2); round <= 3; round++ {
		do := a.Ended(End{Code: 3}, start)
		if do.Exit || do.Say == nil || do.Say.Failure == nil || do.Say.Failure.ExitCode != 3 || do.Say.Failure.Infrastructure || !do.Fresh {
			t.Fatalf("within its budget: %+v", do)
		}
		a.Answered(part(round), start)
	}
	if do := a.Ended(lost, start); do.Exit || !do.Say.Failure.Infrastructure {
		t.Fatalf("a lost connection is taken for the program's fault: %+v", do)
	}
	a.Answered(part(4), start)
	if do := a.Ended(End{Code: 3}, start); !do.Exit || do.Code != 3 {
		t.Fatalf("beyond its budget: %+v", do)
	}
}

func TestConsecutiveLossesAreLimited(t *testing.T) {
	a := inRound(t)
	now := start
	for range 3 {
		if do := a.Ended(lost, now); do.Exit {
			t.Fatal("three in a row are within the budget")
		}
		a.Answered(part(2), now)
	}
	now = now.Add(budget.Steady)
	if do := a.Ended(lost, now); do.Exit {
		t.Fatal("after a steady round it counts anew")
	}
	for range 2 {
		a.Answered(part(3), now)
		if do := a.Ended(lost, now); do.Exit {
			t.Fatal("that is within the budget")
		}
	}
	a.Answered(part(4), now)
	if do := a.Ended(lost, now); !do.Exit || do.Code != 1 {
		t.Fatalf("the fourth in a row: %+v", do)
	}
}

func TestFailureClassification(t *testing.T) {
	for name, tc := range map[string]struct {
		end            End
		hung           bool
		infrastructure bool
		message        string
	}{
		"a code":                      {End{Code: 2}, false, false, "exit code 2"},
		"a fault of memory":           {End{Signal: syscall.SIGSEGV}, false, false, "ended by segmentation fault"},
		"killed from outside":         {End{Signal: syscall.SIGKILL}, false, true, "ended from outside by killed"},
		"killed for lack of memory":   {End{Signal: syscall.SIGKILL, OutOfMemory: true}, false, false, "out of memory"},
		"a child killed for it":       {End{Code: 1, OutOfMemory: true}, false, false, "out of memory"},
		"killed because it hung":      {End{Signal: syscall.SIGKILL}, true, false, "no sign of life"},
		"a connection of gloo's":      {End{Code: 1, Stderr: []byte("[gloo/transport/tcp/pair.cc:534] Connection closed by peer")}, false, true, `lost its connection to the others: "gloo/transport/tcp/pair.cc:534] Connection closed"`},
		"an error that names no peer": {End{Code: 1, Stderr: []byte("ValueError: no connection")}, false, false, "exit code 1"},
	} {
		if got := tc.end.failure(tc.hung); got.Infrastructure != tc.infrastructure || got.Message != tc.message {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSidecarEndsWithItsRound(t *testing.T) {
	a := NewSidecar(42)
	a.Begin()
	if do := a.Answered(part(1), start); do.Start == nil {
		t.Fatalf("the barrier stays: %+v", do)
	}
	if do := a.Answered(protocol.Response{Over: "over"}, start); !do.Exit || do.Code != 42 {
		t.Fatalf("its round is over: %+v", do)
	}
}

func TestEnvironmentKeepsTheUsersValues(t *testing.T) {
	got := Environment([]string{"PET_NPROC_PER_NODE=8", "RANK=7", "HOME=/root", "NCCL_ASYNC_ERROR_HANDLING=0"},
		Job{ID: "job", Endpoint: "muster:9444", Restarts: 2}, *part(5).Round)
	for _, want := range []string{"PET_NPROC_PER_NODE=8", "HOME=/root", "NCCL_ASYNC_ERROR_HANDLING=0", "RANK=1", "WORLD_SIZE=2", "LATTICE_ROUND=5",
		"MASTER_ADDR=10.0.0.1", "MASTER_PORT=4000", "TORCHELASTIC_RESTART_COUNT=2", "NUM_LOCAL_DEVICES=1"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not in %q", want, got)
		}
	}
	if slices.Contains(got, "RANK=7") || slices.Contains(got, "PET_NPROC_PER_NODE=1") {
		t.Errorf("variables are there twice: %q", got)
	}
}

// TestAtMostOneCommandRuns: under random inputs the agent starts no command while one runs, requests a round only when
// none runs, and does nothing after its end. From any state it can be terminated.
func TestAtMostOneCommandRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := New(budget, time.Second)
		now, commandRuns, exited := start, false, false
		round := int64(0)
		take := func(do Do) {
			if exited && (do.Start != nil || do.Say != nil || do.Exit || do.Signal != 0) {
				t.Fatalf("after its end it does %+v", do)
			}
			if do.Say != nil && do.Say.State == protocol.Waiting && commandRuns {
				t.Fatal("it says that it waits, and its command runs")
			}
			if do.Start != nil {
				if commandRuns {
					t.Fatal("it starts a second command")
				}
				commandRuns = true
			}
			if do.Exit && commandRuns {
				t.Fatal("it ends and leaves its command")
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
				take(a.Signalled(rapid.SampledFrom([]syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1}).Draw(t, "signal")))
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
			t.Fatal("it was asked to end, and its command has ended, and it goes on")
		}
	})
}
