package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// ledgers converts what workloads hold, or are to hold, to amounts of the tree.
type ledgers struct{ tree *quota.Tree }

// charges is what the ledgers and tallies contain for a workload.
type charges struct {
	queue *clusterQueue
	local *localQueue
	// held and planned are the amounts charged to each ledger.
	held, planned quota.Vector
	holder        *preempt.Holder
	count         counted
}

// updateCharges updates ledgers and tallies to what the workload holds or was promised.
func (e *Engine) updateCharges(w *workload) {
	was := w.charged
	now := charges{queue: w.queue, local: w.local, count: w.counts()}
	if w.held != nil {
		now.held = e.ledgers.vectorOf(w.held)
		switch {
		case w.lostItsNodes():
			now.planned = now.held
		case !w.leaving():
			now.planned = e.ledgers.plannedOf(w)
		}
	} else if w.nomination != nil {
		now.planned = w.nomination.usage
	} else if w.Unheld && w.queue != nil {
		now.held = e.evaluator.firstFlavors(w)
		now.planned = now.held
	}
	if w.queue != nil && len(now.planned) > 0 && w.assumed != resizes && !w.leaving() && !w.isRefused(reductionChange) && (w.held != nil || w.nomination != nil) {
		now.holder = &preempt.Holder{Key: w.Key, Priority: w.Priority, QueuedAt: w.QueuedAt,
			ReservedAt: w.ReservedAt, Usage: now.planned, Promised: w.nomination != nil}
		e.ledgers.setSpare(w, now.holder)
	}
	e.charge(was, now)
	if was.holder != nil {
		was.queue.removeHolder(was.holder)
	}
	if now.holder != nil {
		now.queue.addHolder(now.holder)
	}
	if now.queue != nil && (was.queue != now.queue || !slices.Equal(was.planned, now.planned) || !sameHolder(was.holder, now.holder)) {
		now.queue.waits.Charged(now.planned, now.holder)
		if now.queue.family != nil && now.holder != nil && w.resizableSet() >= 0 {
			now.queue.family.enqueue() // it may grow, or others for whom it yields
			now.queue.waits.Shrinkable(now.holder)
		}
	}
	e.recount(was, now)
	w.charged = now
	e.growths.list(w)
	e.growths.noteSurplus(w)
	e.nodes.updatePlaces(w)
}

// firstFlavors returns what the workload takes if all its pods use the first flavors of its queue.
func (ev *evaluator) firstFlavors(w *workload) quota.Vector {
	form := flavor.NewForm(w.PodSets, ev.offer(w.queue), ev.tree)
	return form.First(form.Full())
}

func sameHolder(a, b *preempt.Holder) bool {
	if a == nil || b == nil {
		return a == b
	}
	return preempt.CompareHolders(a, b) == 0 && a.Spare == b.Spare && slices.Equal(a.Pod, b.Pod)
}

// charge updates the ledgers from one state to the next.
func (e *Engine) charge(was, now charges) {
	if was.queue == now.queue && slices.Equal(was.held, now.held) && slices.Equal(was.planned, now.planned) {
		return
	}
	e.tallies.moveShares(was.queue)
	was.queue.recharged()
	if now.queue != was.queue {
		e.tallies.moveShares(now.queue)
		now.queue.recharged()
	}
	if was.queue != nil {
		e.tree.Release(was.queue.Name, quota.Held, was.held)
		e.tree.Release(was.queue.Name, quota.Planned, was.planned)
		was.queue.released(decreased(was, now, was.held, now.held))
		was.queue.released(decreased(was, now, was.planned, now.planned))
	}
	if now.queue != nil {
		e.tree.Charge(now.queue.Name, quota.Held, now.held)
		e.tree.Charge(now.queue.Name, quota.Planned, now.planned)
	}
}

// decreased returns the indices of which less is charged after than before, of the same queue.
func decreased(was, now charges, before, after quota.Vector) []quota.Index {
	var out []quota.Index
	for _, a := range before {
		if was.queue != now.queue || after.Of(a.Index) < a.Value {
			out = append(out, a.Index)
		}
	}
	return out
}

// vectorOf returns what the admission takes, including the surplus of terminating pods.
func (l *ledgers) vectorOf(a *Admission) quota.Vector {
	var amounts []quota.Amount
	for _, ps := range a.PodSets {
		for resource, amount := range ps.Usage {
			fr := quota.FlavorResource{Flavor: ps.Flavors[resource], Resource: resource}
			amounts = append(amounts, quota.Amount{Index: l.tree.Index(fr), Value: quota.Add(amount, ps.Surplus[resource])})
		}
	}
	return quota.VectorOf(amounts...)
}
