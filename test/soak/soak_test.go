// Package soak runs Muster for minutes on the embedded control plane, with simulated nodes and two operators: jobs of
// all APIs come, change and go at random, nodes and quotas change, and operators are killed or paused. Then it leaves
// the world alone and demands that it settles in a state in which nothing is lost, over quota or half done. At last it
// deletes all jobs but an elastic one, which must grow.
//
// `make soak` runs it. What is random follows from the seed of a round, so that a seed gives the same world and the
// same disturbances again; their effects also depend on how fast the machine is.
package soak

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

var (
	rounds   = flag.Int("rounds", 0, "how many rounds to run, with a seed each")
	seed     = flag.Uint64("seed", 1, "seed of the first round; the next rounds have the numbers that follow")
	duration = flag.Duration("duration", 2*time.Minute, "how long a round disturbs the world")
)

// TestMain asks for a simulated node, because with none the cluster would simulate no pods. Each round has its own.
func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{SimNodes: 1, SimGPUs: 1}) }

func TestSoak(t *testing.T) {
	if *rounds == 0 {
		t.Skip("make soak runs it")
	}
	for i := range uint64(*rounds) {
		t.Run(fmt.Sprintf("seed=%d", *seed+i), func(t *testing.T) { newRound(t, *seed+i).run() })
	}
}

// round is a world of its own with all that is random in it.
type round struct {
	*harness.World
	*rand.Rand
	*journal
	operators [2]*operatorProcess
	flags     []string

	racks  int
	nodes  []*node
	queues []*queue
	// What the round has at all: one queue whose quota follows the nodes, places for pods on nodes (or quota alone),
	// elastic jobs, GPUs, jobs with limits and queues that plan starts.
	followsNodes, placed, elastic, gpus, plans bool

	jobs []*job
}

func newRound(t *testing.T, seed uint64) *round {
	return &round{World: harness.New(t), Rand: rand.New(rand.NewPCG(seed, 0))}
}

// run is the story of a round.
func (r *round) run() {
	r.build()
	r.startOperators()
	r.journal = r.watch()
	r.answerChecks()

	r.disturb(*duration)

	r.heal()
	quiet := time.Now()
	r.mustSettle("after the last disturbance")
	r.expectNoChurn(quiet)

	r.restartOperators()
	r.expectStill(calm, "new operators observed a world that had settled")

	r.expectGrowth()
	r.deleteAllJobs()
	r.mustBeEmpty()
	r.endOperators()
	r.expectReplay()
	r.logPlayed()
}

// note records in the journal, and in the test's log, what was done to the world.
func (r *round) note(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	r.journal.note(text)
	if testing.Verbose() {
		fmt.Printf("%s %s\n", time.Now().Format(clockFormat), text)
	}
}

// one returns one of the items.
func one[T any](r *round, items ...T) T { return items[r.IntN(len(items))] }

// chance is true so often.
func (r *round) chance(percent int) bool { return r.IntN(100) < percent }

// fails fails the round if there are complaints, and reports before anything of the world is taken away.
func (r *round) fails(when string, complaints []complaint) {
	r.Helper()
	if len(complaints) == 0 {
		return
	}
	var lines []string
	for _, c := range complaints {
		r.journal.accuse(c.about)
		lines = append(lines, c.String())
	}
	r.report()
	r.Fatalf("%s:\n  %s", when, strings.Join(lines, "\n  "))
}
