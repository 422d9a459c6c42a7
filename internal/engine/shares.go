package engine

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// strategies returns the strategies of fair sharing, nil if it is off.
func (ev *evaluator) strategies() []preempt.Strategy {
	if ev.options.FairSharing == nil {
		return nil
	}
	return ev.options.FairSharing.Strategies
}

// moveShares notes that the usage of a queue has changed.
func (e *Engine) moveShares(q *clusterQueue) {
	if e.options.FairSharing == nil || q == nil || q.family == nil {
		return
	}
	q.family.waits.SharesMoved()
	e.markSharesChanged(q)
}

// markSharesChanged notes that the shares of the cohorts above a queue may have changed.
func (e *Engine) markSharesChanged(q *clusterQueue) {
	if e.options.FairSharing == nil || q.node == nil || q.node.Cyclic() {
		return
	}
	for n := q.node.Parent(); n != nil; n = n.Parent() {
		e.sharesChanged.Insert(n.Name())
	}
}

// TakeChangedCohorts returns the cohorts whose share may have changed since the last call, sorted by name.
func (e *Engine) TakeChangedCohorts() []string {
	names := sets.List(e.sharesChanged)
	e.sharesChanged.Clear()
	return names
}

// CohortShare returns the share of a cohort beside its siblings, in thousandths; ok is false if fair sharing is off
// or there is no such cohort.
func (e *Engine) CohortShare(name string) (share int64, ok bool) {
	node := e.tree.Cohort(name)
	if e.options.FairSharing == nil || node == nil {
		return 0, false
	}
	return *e.shareOf(node), true
}

// shareOf returns the share of what is held, in thousandths; nil if fair sharing is off.
func (e *Engine) shareOf(n *quota.Node) *int64 {
	if e.options.FairSharing == nil {
		return nil
	}
	share := fair.Of(n, quota.Held, nil).Thousandths()
	return &share
}
