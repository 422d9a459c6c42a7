package engine

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/reason"
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
}

func (e *Engine) newPass(budget int) *pass {
	p := &pass{engine: e, budget: budget}
	p.evictions.pass, p.repairs.pass, p.growth.pass = p, p, p
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
func (p *pass) addDecision(w *workload, urgency int32, d Decision) {
	d.Key, d.UID, d.Generation, d.Urgency = w.Key, w.UID, w.Generation, urgency
	if d.Why.Code == reason.None {
		if !d.Withdraw {
			p.engine.serial++
			w.serial = p.engine.serial
		}
		d.Serial = w.serial
	}
	p.decisions = append(p.decisions, d)
}

// resize gives the workload another size.
func (p *pass) resize(w *workload, at int, given *Admission, by Key) {
	from, to := w.held.PodSets[at].Count, given.PodSets[at].Count
	if !w.held.HasSurplus() {
		w.vacated = nil
	}
	w.vacated = merge(w.vacated, beyond(w.held.PodSets[at].Places, given.PodSets[at].Places))
	w.before, w.held = w.held, given
	w.assumed, w.decidedOn = resizes, w.Version
	w.resizedBefore, w.ResizedAt, w.growthFailed = w.ResizedAt, p.engine.growths.now.Truncate(time.Second), false
	if to < from {
		w.growing = nil // a workload that was asked for pods is not given others soon
	}
	p.engine.updateCharges(w)
	sake := w
	if other := p.engine.workloads[by]; other != nil {
		sake = other
	}
	p.addDecision(w, sake.Priority, Decision{Resize: &Resize{Admission: given, PodSet: given.PodSets[at].PodSet, From: from, To: to, For: by}})
}

// evictionPass is the evictions in a pass.
type evictionPass struct{ pass *pass }

// repairPass is the repair of lost places in a pass.
type repairPass struct{ pass *pass }

// growthPass is the growth of workloads in a pass.
type growthPass struct{ pass *pass }

// admit gives the workload its quota.
func (p *pass) admit(w *workload, given *Admission) {
	w.held, w.assumed, w.decidedOn = given, admits, w.Version
	// Truncated to seconds as in the API: otherwise the eviction order would change after a restart.
	w.ReservedAt = p.engine.growths.now.Truncate(time.Second)
	w.why = reason.Reason{}
	p.engine.usageHistory.prepay(w)
	w.queueEntry.Remove()
	p.engine.reports.unreported.drop(w.Key)
	p.engine.updateCharges(w)
	p.addDecision(w, w.Priority, Decision{Admit: given})
}

// try asks the API server whether it would accept this admission. The workload waits aside until the answer.
func (p *pass) try(w *workload, given *Admission) {
	w.assumed, w.decidedOn = tries, w.Version
	p.engine.reports.set(w, w.refusal.why())
	p.addDecision(w, w.Priority, Decision{Try: given})
}

// checksFor returns the names of the checks of the queue that apply to the given flavors, without duplicates: a queue
// may list a check several times, each for some flavors.
func (cq *clusterQueue) checksFor(given *Admission) []string {
	var names []string
	for _, check := range cq.Checks {
		if check.AppliesTo(given) && !slices.Contains(names, check.Name) {
			names = append(names, check.Name)
		}
	}
	return names
}
