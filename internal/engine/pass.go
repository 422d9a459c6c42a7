package engine

import (
	"time"

	"github.com/musterhq/muster/internal/engine/growth"
	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// pass is one call of Decide: all that has changed since the last one is looked at.
type pass struct {
	engine *Engine
	// budget is what is left of the Engine's.
	budget    int
	decisions []Decision
	// The steps of a pass that have methods of their own.
	evictions evictionPass
	repairs   repairPass
	growth    growthPass
	// reservations plans the starts of those that do not fit.
	reservations reservationPass
}

func (e *Engine) newPass(budget int) *pass {
	p := &pass{engine: e, budget: budget}
	p.evictions, p.repairs, p.growth = evictionPass{p, e}, repairPass{p, e, e.nodes}, growthPass{p, e, e.growths}
	p.reservations = reservationPass{p, e, e.starts}
	return p
}

// spend lets do spend this part of the budget. It may spend a little more.
func (p *pass) spend(share int, do func()) {
	rest := p.budget - share
	p.budget = share
	do()
	p.budget += rest
}

// addDecision appends a decision about the workload with the given urgency.
func (p *pass) addDecision(w *state.Workload, urgency int32, d Decision) {
	d.Key, d.UID, d.Generation, d.Urgency = w.Key, w.UID, w.Generation, urgency
	if d.Why.Code == reason.None {
		if !d.Withdraw {
			p.engine.serial++
			w.Serial = p.engine.serial
		}
		d.Serial = w.Serial
	}
	p.decisions = append(p.decisions, d)
}

// resize gives the workload another size.
func (p *pass) resize(w *state.Workload, at int, given *Admission, by Key) {
	from, to := w.Held.PodSets[at].Count, given.PodSets[at].Count
	if !w.Held.HasSurplus() {
		w.Vacated = nil
	}
	w.Vacated = nodes.Merge(w.Vacated, nodes.Beyond(w.Held.PodSets[at].Places, given.PodSets[at].Places))
	w.Before, w.Held = w.Held, given
	w.Assumed, w.DecidedOn = state.Resizes, w.Version
	w.ResizedBefore, w.ResizedAt, w.GrowthFailed = w.ResizedAt, p.engine.growths.Now.Truncate(time.Second), false
	if to < from {
		w.Growing = nil // a workload that was asked for pods is not given others soon
	}
	p.engine.updateCharges(w)
	sake := w
	if other := p.engine.workloads[by]; other != nil {
		sake = other
	}
	p.addDecision(w, sake.Priority,
		Decision{Resize: &Resize{Admission: given, PodSet: given.PodSets[at].PodSet, From: from, To: to, For: by}})
}

// evictionPass is the evictions in a pass.
type evictionPass struct {
	pass   *pass
	engine *Engine
}

// repairPass is the repair of lost places in a pass.
type repairPass struct {
	pass   *pass
	engine *Engine
	nodes  *nodes.Nodes
}

// growthPass is the growth of workloads in a pass.
type growthPass struct {
	pass    *pass
	engine  *Engine
	growths *growth.Growths
}

// reservationPass is the planning of starts in a pass.
type reservationPass struct {
	pass   *pass
	engine *Engine
	starts *starts
}

// admit gives the workload its quota.
func (p *pass) admit(w *state.Workload, given *Admission) {
	w.Held, w.Assumed, w.DecidedOn = given, state.Admits, w.Version
	// Truncated to seconds as in the API: otherwise the eviction order would change after a restart.
	w.ReservedAt = p.engine.growths.Now.Truncate(time.Second)
	w.Why = reason.Reason{}
	p.engine.usageHistory.prepay(w)
	p.engine.starts.admitted(w)
	w.QueueEntry.Remove()
	p.engine.reports.unreported.drop(w.Key)
	p.engine.updateCharges(w)
	p.addDecision(w, w.Priority, Decision{Admit: given})
}

// try asks the API server whether it would accept this admission. The workload waits aside until the answer.
func (p *pass) try(w *state.Workload, given *Admission) {
	w.Assumed, w.DecidedOn = state.Tries, w.Version
	p.engine.reports.set(w, w.Refusal.Why())
	p.addDecision(w, w.Priority, Decision{Try: given})
}
