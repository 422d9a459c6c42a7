package engine

import "github.com/musterhq/muster/internal/engine/quota"

// Holding is what the ledgers contain for a workload that holds quota.
type Holding struct {
	Key Key
	// ClusterQueue is the queue whose quota it holds, Held how much.
	ClusterQueue string
	Held         quota.Vector
	// Assumed says that a decision about it has not been confirmed: the API server may have it or not.
	Assumed bool
}

// Holdings yields a Holding for each workload that holds quota, in no particular order.
func (e *Engine) Holdings(yield func(Holding) bool) {
	for _, w := range e.workloads {
		if h, ok := w.holding(); ok && !yield(h) {
			return
		}
	}
}

// Holding returns the Holding of the workload; ok is false if it holds no quota.
func (e *Engine) Holding(key Key) (_ Holding, ok bool) {
	w := e.workloads[key]
	if w == nil {
		return Holding{}, false
	}
	return w.holding()
}

func (w *workload) holding() (_ Holding, ok bool) {
	c := &w.charged
	if w.held == nil || c.queue == nil {
		return Holding{}, false
	}
	return Holding{Key: w.Key, ClusterQueue: c.queue.Name, Held: c.held, Assumed: w.assumed != nothing}, true
}

// AmountName returns the flavor and the resource of an index.
func (e *Engine) AmountName(i quota.Index) quota.FlavorResource { return e.tree.Name(i) }
