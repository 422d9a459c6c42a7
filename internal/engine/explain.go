package engine

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Arrange applies changes of queues, cohorts and namespaces to the state, as Decide does first, but decides nothing.
// An engine that is only used for Explain needs it once all events are applied; now is the time that it explains.
func (e *Engine) Arrange(now time.Time) {
	e.growths.now = now.Round(0)
	if e.reshaped {
		e.reshape()
	}
	e.newPass(math.MaxInt).reroute()
}

// Explain explains the state of the workload, with current numbers; ok is false if there is no such workload. It
// changes nothing. If its queue has changed since the last Decide or Arrange, the explanation says only that.
func (e *Engine) Explain(key Key) (explanation reason.Explanation, ok bool) {
	w := e.workloads[key]
	if w == nil {
		return reason.Explanation{}, false
	}
	x := &explainer{engine: e, w: w, first: w, out: reason.Explanation{
		State: stateOf(w), Priority: w.Priority, Since: w.QueuedAt, LocalQueue: w.Queue, PodSets: requests(w.shape.podSets),
	}}
	if w.queue != nil {
		x.setPosition()
	}
	x.out.AwaitsNodes = e.nodes.awaitsNodes(w)
	x.out.Replacing = e.nodes.explainReplacement(w)
	if w.held == nil {
		x.explainWait()
	}
	return x.out, true
}

// explainer is one call of Explain.
type explainer struct {
	engine *Engine
	w      *workload
	out    reason.Explanation
	// first is the workload for which others would be evicted: w, or the head of its class.
	first *workload
	// probed is the class of w alone, as it was evaluated.
	probed *class
	// nearest are the flavors that come closest to fitting, needs what they are asked for together, and short what of
	// that is not free.
	nearest []*flavor.FlavorFit
	needs   quota.Vector
	short   []quota.Index
	// mustBeFixed is set if the workload, its queue, or what refuses its admission must be fixed first: until then no
	// eviction and no workload's end would help.
	mustBeFixed bool
}

func stateOf(w *workload) reason.State {
	switch {
	case w.held != nil && w.leaving():
		return reason.Leaving
	case w.counts().state == admitted:
		return reason.Admitted
	case w.held != nil:
		return reason.Reserving
	case w.nomination != nil:
		return reason.Promised
	case w.class != nil:
		return reason.Waiting
	default:
		return reason.Aside
	}
}

// requests returns the pod sets, without flavors.
func requests(podSets []PodSet) []reason.PodSet {
	out := make([]reason.PodSet, len(podSets))
	for i, ps := range podSets {
		out[i] = reason.PodSet{Name: ps.Name, Pods: ps.Needed(), PerPod: corev1.ResourceList{}}
		if ps.Fewest() < ps.Needed() {
			out[i].Fewest, out[i].Together = ps.Fewest(), ps.Together
		}
		for name, amount := range ps.PerPod {
			out[i].PerPod[corev1.ResourceName(name)] = quota.ToQuantity(corev1.ResourceName(name), amount)
		}
	}
	return out
}

// setPosition sets the workload's position among those that wait in its queue.
func (ex *explainer) setPosition() {
	q := ex.w.queue
	ex.out.ClusterQueue, ex.out.ByUsage = q.Name, q.byUsage
	if q.node != nil {
		ex.out.Path = path(q.node)
	}
	own := ex.w.turn()
	first := own
	in := ex.w.class != nil || ex.w.nomination != nil
	if in {
		ex.out.Position = 1
	}
	for p := range ex.engine.inLine(q) {
		ex.out.Length++
		if in && p.before(own, q) {
			ex.out.Position++
		}
		if p.before(first, q) {
			first = p
		}
	}
	if ex.w.class == nil || q.Strategy != Strict {
		return
	}
	if first.rank.Key != ex.w.Key {
		ex.out.Behind = new(reason.NameOf(first.rank.Key))
	}
}

// inLine returns the workloads that wait for quota in the queue, in no particular order.
func (e *Engine) inLine(q *clusterQueue) func(yield func(turn) bool) {
	return func(yield func(turn) bool) {
		for _, w := range e.nominees(q) {
			if !yield(w.turn()) {
				return
			}
		}
		for _, c := range q.classes {
			for _, r := range c.Workloads() {
				if !yield(turn{c.from.Standing, r}) {
					return
				}
			}
		}
	}
}

// explainWait explains why the workload has no quota, and what would have to happen.
func (ex *explainer) explainWait() {
	w, q := ex.w, ex.w.queue
	if q != nil && (ex.engine.reshaped || ex.engine.changed.Has(q.Name)) || w.localEntry.On() == w.local.unrouted {
		ex.setReason(reason.Reason{Code: reason.PendingEvaluation, Detail: "its queue has changed, and is evaluated next"})
		return
	}
	why := ex.engine.whyInadmissible(w)
	if q == nil || q.node == nil {
		ex.setReason(why)
		return
	}
	ex.engine.tentatively(func() {
		if w.nomination != nil { // it does not have to wait for what is promised to itself
			ex.engine.tree.Release(q.Name, quota.Planned, w.nomination.usage)
			ex.engine.nodes.places.Hold(w.Key, nil)
		} else {
			ex.engine.holdBacks.chargeAll(q.family) // as in a pass
			defer ex.engine.holdBacks.releaseAll(q.family)
			ex.findHead()
		}
		form, found := ex.probe(w)
		if c := w.class; c != nil && c.Head().Key != w.Key && found.verdict == preempting {
			// It gets nothing before the head of its class, which may have been evicted for those that would stop for it.
			head := ex.engine.workloads[c.Head().Key]
			if _, of := ex.probe(head); of.verdict == hopeless {
				ex.first, found = head, of
			}
		}
		if w.nomination != nil && (found.verdict != admissible || !ex.hasPromised()) {
			// No others are evicted for it, and it is given what it was promised, even if other flavors or fewer pods fit now.
			found.verdict, found.victims, found.yields = nominable, nil, nil
			if found.choice.Why.Code == reason.None {
				found.choice.Why = w.nomination.why
			}
		}
		ex.mustBeFixed = why.Code == reason.Inadmissible || ex.isRefusedPreemptor(found)
		ex.engine.holdBacks.release(q)
		ex.surveyFlavors(form, ex.countsOf(form, found))
		if !ex.mustBeFixed {
			ex.findVictims(found)
			if found.verdict != hopeless || !ex.engine.evaluator.whyHopeless(ex.probed, found).Code.Never() {
				ex.findHolders(found, form.OnNodes())
			}
		}
		ex.findStuckHead()
		if why.Code == reason.None {
			why = ex.whyNow(found)
		}
	})
	ex.setReason(why)
}

// isRefusedPreemptor reports whether others would be evicted for the workload, but are not, since the API server has
// refused its admission.
func (ex *explainer) isRefusedPreemptor(found outcome) bool {
	return found.verdict == preempting && ex.w.mustTry()
}

// findVictims lists the workloads that would shrink or be evicted for the workload.
func (ex *explainer) findVictims(found outcome) {
	for _, y := range found.yields {
		ex.out.WouldShrink = append(ex.out.WouldShrink, reason.Shrink{Name: reason.NameOf(y.w.Key), From: y.w.held.PodSets[y.at].Count, To: y.given.PodSets[y.at].Count})
	}
	for _, v := range found.victims {
		ex.out.WouldPreempt = append(ex.out.WouldPreempt, reason.Victim{Name: reason.NameOf(v.Key), Cause: v.Cause.String()})
	}
}

// hasPromised reports whether what the workload was promised is available now.
func (ex *explainer) hasPromised() bool {
	places := admissible
	if ex.w.nomination.given.OnNodes() {
		places, _ = ex.engine.nodes.findNominated(ex.w)
	}
	return places == admissible && fits(ex.w.queue.node, ex.w.nomination.usage)
}

// alone returns a class of the workload alone, which is in no queue.
func alone(w *workload) *class {
	c := &class{classKey: classKey{shape: w.shape, priority: w.Priority, local: w.LocalKey()}, queue: w.queue, from: w.local}
	c.Class = waiting.Alone(c, w.rank())
	return c
}

// probe evaluates a workload as if it were the next in line.
func (ex *explainer) probe(w *workload) (*flavor.Form, outcome) {
	c := alone(w)
	if w == ex.w {
		ex.probed = c
	}
	return ex.engine.evaluator.formOf(c), ex.engine.evaluator.evaluateInTurn(c)
}

// countsOf returns the counts of each pod set with which flavors are surveyed: those that it was promised or could
// get, or else the smallest ones, as what they are short of has to become free.
func (ex *explainer) countsOf(form *flavor.Form, found outcome) []int32 {
	given := found.choice.Assignments
	switch {
	case ex.w.nomination != nil:
		given = ex.w.nomination.given.PodSets
	case found.verdict == hopeless:
		return form.ReducedBy(form.Reducible())
	}
	counts := form.Full()
	for i := range given {
		counts[i] = given[i].Count
	}
	return counts
}

// tentatively runs f and rolls back its changes of quota and places.
func (e *Engine) tentatively(f func()) { e.tree.Try(func() { e.nodes.places.Try(f) }) }

func (ex *explainer) setReason(why reason.Reason) {
	ex.out.Code, ex.out.Message = why.Code, why.Message()
}

// whyNow returns the reason for which a workload in line waits, given its outcome.
func (ex *explainer) whyNow(found outcome) reason.Reason {
	q := ex.w.queue
	if why := ex.engine.mustWait(q); why.Code != reason.None && ex.waitsForReadyPods(found) {
		ex.findUnready()
		return why
	}
	switch {
	case ex.out.BehindCode != reason.None:
		return whyBehindStuck(q, ex.out.BehindCode)
	case ex.out.Behind != nil:
		return whyBehind(q)
	}
	why := ex.engine.evaluator.whyHopeless(ex.probed, found)
	if c := ex.w.class; c != nil && c.IsBlocked() && (found.verdict == admissible || found.verdict == nominable) {
		// There is or will be capacity, but another queue keeps it for its own workloads.
		return reason.Reason{Code: reason.WaitingForQuota, Detail: "the free quota is kept for another ClusterQueue, whose own workloads wait for more of it"}
	}
	if ex.isRefusedPreemptor(found) {
		return ex.w.refusal.why()
	}
	switch found.verdict {
	case admissible:
		return reason.Reason{Code: reason.PendingEvaluation, Detail: "it fits now: it is admitted next, unless other workloads come first"}
	case nominable, preempting:
		why.Code, why.Preempted = reason.WaitingForPreemptedWorkloads, len(found.victims)
		if why.Preempted == 0 {
			why.Preempted, why.Ending = ex.countAwaited()
		}
	}
	return why
}

// countAwaited returns how many of the workloads that still hold what is short are evicted, and how many were deactivated
// or deleted and end on their own account.
func (ex *explainer) countAwaited() (evicted, ending int) {
	for _, name := range ex.out.Awaits {
		if ex.engine.workloads[Key{Namespace: name.Namespace, Name: name.Name}].Inactive {
			ending++
		} else {
			evicted++
		}
	}
	return evicted, ending
}

// findUnready lists the workloads whose pods must be ready first.
func (ex *explainer) findUnready() {
	for _, w := range sortedByKey(ex.engine.workloads) {
		if w.charged.count.unready && (ex.engine.options.BlockUntilReady == BlockAll || w.charged.queue == ex.w.queue) {
			ex.out.Unready = append(ex.out.Unready, reason.NameOf(w.Key))
		}
	}
}

// findStuckHead says of the head of a strict queue that the workload waits behind whether it is never admitted with the
// present quota and nodes.
func (ex *explainer) findStuckHead() {
	if ex.out.Behind == nil || ex.w.queue.Strategy != Strict {
		return
	}
	head := ex.engine.workloads[Key{Namespace: ex.out.Behind.Namespace, Name: ex.out.Behind.Name}]
	if head == nil || head.class == nil {
		return
	}
	c := alone(head)
	if found := ex.engine.evaluator.evaluateInTurn(c); found.verdict == hopeless {
		if code := ex.engine.evaluator.whyHopeless(c, found).Code; code.Never() {
			ex.out.BehindCode = code
		}
	}
}

// waitsForReadyPods reports whether the reported reason is that other workloads must be ready first.
func (ex *explainer) waitsForReadyPods(found outcome) bool {
	if promised := ex.w.nomination; promised != nil {
		return fits(ex.w.queue.node, promised.usage)
	}
	return !ex.wasHopeless(found)
}

// wasHopeless reports whether the workload was found hopeless before its queue had to wait, and still is: then
// that is the reported reason.
func (ex *explainer) wasHopeless(found outcome) bool {
	c := ex.w.class
	return found.verdict == hopeless && (c != nil && c.IsBlocked() || ex.w.why.Code == found.choice.Why.Code)
}

// surveyFlavors asks each flavor for these counts of each pod set.
func (ex *explainer) surveyFlavors(form *flavor.Form, counts []int32) {
	q := ex.w.queue
	var promised []Assignment
	if ex.w.nomination != nil {
		promised = ex.w.nomination.given.PodSets
	}
	var needs []quota.Amount
	for i, looks := range form.Survey(counts, ex.engine.evaluator.questionOf(ex.first, q), promised) {
		for n := range looks {
			nodes := ex.nodesOf(i, &looks[n])
			said := ex.verdictOf(&looks[n], ex.asksWithoutPlaces(i, counts[i], &looks[n], nodes))
			said.Nodes = nodes
			ex.out.PodSets[i].Flavors = append(ex.out.PodSets[i].Flavors, said)
			if !looks[n].Nearest {
				continue
			}
			ex.nearest = append(ex.nearest, &looks[n])
			for at, v := range looks[n].Amounts {
				needs = append(needs, quota.Amount{Index: looks[n].Indices[at], Value: v.Asked})
			}
		}
	}
	ex.out.Together = ex.together()
	ex.needs = quota.VectorOf(needs...)
	for _, a := range ex.needs {
		if q.node.Free(a.Index) < a.Value {
			ex.short = append(ex.short, a.Index)
		}
	}
}

// verdictOf converts the result for a flavor for users. The asks are those that have no places now.
func (ex *explainer) verdictOf(l *flavor.FlavorFit, asks []place.Ask) reason.FlavorVerdict {
	out := reason.FlavorVerdict{Flavor: l.Flavor, Nearest: l.Nearest, Borrows: l.Borrowing > 0, Message: l.Refusal}
	var usage []quota.Amount
	for n, v := range l.Amounts {
		out.Amounts = append(out.Amounts, amountOf(v))
		usage = append(usage, quota.Amount{Index: l.Indices[n], Value: quota.Add(v.Earlier, v.Asked)})
	}
	switch {
	case l.Refusal != "":
		out.Fit = reason.Refused
	case l.Mode == flavor.NoFit:
		out.Fit = reason.TooLarge
	case l.Mode == flavor.Fits:
		out.Fit = reason.Fits
	case l.Mode == flavor.Awaits && (ex.w.nomination != nil || ex.fitOnceGone(asks)):
		out.Fit = reason.FitsAfterEvicted
	default:
		out.Fit = reason.Short
		if l.Mode == flavor.Blocked || l.Mode == flavor.Awaits || ex.mustBeFixed {
			break
		}
		wanted := quota.VectorOf(usage...)
		p := ex.engine.evaluator.preemptor(ex.first, ex.w.queue, wanted, shortOf(ex.w.queue.node, wanted))
		victims := ex.engine.evaluator.victimsOf(p)
		if len(victims) > 0 && len(asks) > 0 {
			victims, _ = ex.engine.evaluator.searchOnNodes(p, asks) // others may have to go, or there is no way
		}
		for _, v := range victims {
			out.Fit = reason.FitsByPreemption
			out.WouldPreempt = append(out.WouldPreempt, reason.NameOf(v.Key))
		}
	}
	return out
}

func amountOf(v reason.Verdict) reason.Amount {
	q := func(amount int64) resource.Quantity {
		return quota.ToQuantity(corev1.ResourceName(v.Resource), amount)
	}
	out := reason.Amount{Resource: v.Resource, Asked: q(v.Asked), Earlier: q(v.Earlier), Free: q(v.Free), Missing: q(v.Missing())}
	if v.Capacity != quota.Unlimited {
		out.Capacity = new(q(v.Capacity))
	}
	return out
}
