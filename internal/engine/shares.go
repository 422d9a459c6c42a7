package engine

import (
	"github.com/musterhq/muster/internal/engine/preempt"
)

// strategies are those of fair sharing, nil if it is off.
func (e *Engine) strategies() []preempt.Strategy {
	if e.options.FairSharing == nil {
		return nil
	}
	return e.options.FairSharing.Strategies
}

// moveShares notes that a queue uses more or less than before.
func (e *Engine) moveShares(q *clusterQueue) {
	if e.options.FairSharing == nil || q == nil || q.family == nil {
		return
	}
	q.family.sharesMoved = true
	q.family.put()
}
