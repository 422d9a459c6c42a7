package engine

import (
	"github.com/musterhq/muster/internal/engine/contest"
	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/state"
)

// contestant is the head of a queue with the outcome of its evaluation.
type contestant struct {
	contest.Contestant
	queue   *state.ClusterQueue
	class   *state.Class
	version int
	evaluate.Outcome
}

func newContestant(c *state.Class, found evaluate.Outcome) *contestant {
	q := c.Queue
	out := &contestant{queue: q, class: c, version: q.Family.Version, Outcome: found}
	out.Contestant = contest.Contestant{Of: out, Queue: q.Node, QueueRank: q.Preemption.Rank, Rank: c.Head(),
		Usage: found.Choice.Usage, Borrowing: found.Choice.Borrowing}
	return out
}

// contestant returns the head as the contest knows it, nil for none.
func (c *contestant) contestant() *contest.Contestant {
	if c == nil {
		return nil
	}
	return &c.Contestant
}

// stale reports whether the outcome may be out of date.
func (c *contestant) stale() bool {
	return c.version != c.queue.Family.Version || !c.class.IsFirst() || c.class.Head() != c.Rank
}
