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
)

// Arrange applies changes of queues, cohorts and namespaces to the state, as Decide does first, but decides nothing.
// An engine that is only used for Explain needs it once all events are applied; now is the time that it explains.
func (e *Engine) Arrange(now time.Time) {
	e.now = now.Round(0)
	if e.reshaped {
		e.reshape()
	}
	p := pass{Engine: e, budget: math.MaxInt}
	p.reroute()
}

// Explain explains the state of the workload, with current numbers; ok is false if there is no such workload. It
// changes nothing. If its queue has changed since the last Decide or Arrange, the explanation says only that.
func (e *Engine) Explain(key Key) (explanation reason.Explanation, ok bool) {
	w := e.workloads[key]
	if w == nil {
		return reason.Explanation{}, false
	}
	x := &explainer{Engine: e, w: w, first: w, out: reason.Explanation{
		State: stateOf(w), Priority: w.Priority, Since: w.QueuedAt, LocalQueue: w.Queue, PodSets: requests(w.shape.podSets),
	}}
	if w.queue != nil {
		x.setPosition()
	}
	x.out.AwaitsNodes = e.awaitsNodes(w)
	x.out.Replacing = e.explainReplacement(w)
	if w.held == nil {
		x.explainWait()
	}
	return x.out, true
}

// explainer is one call of Explain.
type explainer struct {
	*Engine
	w   *workload
	out reason.Explanation
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
	case w.promise != nil:
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
func (x *explainer) setPosition() {
	q := x.w.queue
	x.out.ClusterQueue, x.out.ByUsage = q.Name, q.byUsage
	if q.node != nil {
		x.out.Path = path(q.node)
	}
	own := x.w.turn()
	first := own
	in := x.w.class != nil || x.w.promise != nil
	if in {
		x.out.Position = 1
	}
	for p := range x.inLine(q) {
		x.out.Length++
		if in && p.before(own, q) {
			x.out.Position++
		}
		if p.before(first, q) {
			first = p
		}
	}
	if x.w.class == nil || q.Strategy != Strict {
		return
	}
	if first.rank.Key != x.w.Key {
		x.out.Behind = new(reason.NameOf(first.rank.Key))
	}
}

// inLine returns the workloads that wait for quota in the queue, in no particular order.
func (e *Engine) inLine(q *clusterQueue) func(yield func(turn) bool) {
	return func(yield func(turn) bool) {
		for _, w := range e.promisees(q) {
			if !yield(w.turn()) {
				return
			}
		}
		for _, c := range q.classes {
			for _, r := range c.waiting.All() {
				if !yield(turn{c.from.standing, r}) {
					return
				}
			}
		}
	}
}

// explainWait explains why the workload has no quota, and what would have to happen.
func (x *explainer) explainWait() {
	w, q := x.w, x.w.queue
	if q != nil && (x.reshaped || x.changed.Has(q.Name)) || w.localEntry.on == w.local.unrouted {
		x.setReason(reason.Reason{Code: reason.PendingEvaluation, Detail: "its queue has changed, and is evaluated next"})
		return
	}
	why := x.whyInadmissible(w)
	if q == nil || q.node == nil {
		x.setReason(why)
		return
	}
	x.tentatively(func() {
		if w.promise != nil { // it does not have to wait for what is promised to itself
			x.tree.Release(q.Name, quota.Planned, w.promise.usage)
			x.places.Hold(w.Key, nil)
		} else {
			x.keepAll(q.family) // as in a pass
			defer x.releaseAllKept(q.family)
			x.findHead()
		}
		form, found := x.probe(w)
		if c := w.class; c != nil && c.head().Key != w.Key && found.verdict == preempting {
			// It gets nothing before the head of its class, which may have been evicted for those that would stop for it.
			head := x.workloads[c.head().Key]
			if _, of := x.probe(head); of.verdict == hopeless {
				x.first, found = head, of
			}
		}
		if w.promise != nil && (found.verdict != admissible || !x.hasPromised()) {
			// No others are evicted for it, and it is given what it was promised, even if other flavors or fewer pods fit now.
			found.verdict, found.victims, found.yields = promisable, nil, nil
			if found.choice.Why.Code == reason.None {
				found.choice.Why = w.promise.why
			}
		}
		x.mustBeFixed = why.Code == reason.Inadmissible || x.isRefusedPreemptor(found)
		x.releaseKept(q)
		x.surveyFlavors(form, x.countsOf(form, found))
		if !x.mustBeFixed {
			x.findVictims(found)
			if found.verdict != hopeless || !x.whyHopeless(x.probed, found).Code.Never() {
				x.findHolders(found, form.OnNodes())
			}
		}
		x.findStuckHead()
		if why.Code == reason.None {
			why = x.whyNow(found)
		}
	})
	x.setReason(why)
}

// isRefusedPreemptor reports whether others would be evicted for the workload, but are not, since the API server has
// refused its admission.
func (x *explainer) isRefusedPreemptor(found outcome) bool {
	return found.verdict == preempting && x.w.mustTry()
}

// findVictims lists the workloads that would shrink or be evicted for the workload.
func (x *explainer) findVictims(found outcome) {
	for _, y := range found.yields {
		x.out.WouldShrink = append(x.out.WouldShrink, reason.Shrink{Name: reason.NameOf(y.w.Key), From: y.w.held.PodSets[y.at].Count, To: y.given.PodSets[y.at].Count})
	}
	for _, v := range found.victims {
		x.out.WouldPreempt = append(x.out.WouldPreempt, reason.Victim{Name: reason.NameOf(v.Key), Cause: v.Cause.String()})
	}
}

// hasPromised reports whether what the workload was promised is available now.
func (x *explainer) hasPromised() bool {
	places := admissible
	if x.w.promise.given.onNodes() {
		places, _ = x.findPromised(x.w)
	}
	return places == admissible && fits(x.w.queue.node, x.w.promise.usage)
}

// classOf returns a class of the workload alone.
func (e *Engine) classOf(w *workload) *class {
	c := &class{classKey: classKey{shape: w.shape, priority: w.Priority, local: w.localKey()}, queue: w.queue, from: w.local}
	c.waiting.Push(w.rank())
	return c
}

// probe evaluates a workload as if it were the next in line.
func (x *explainer) probe(w *workload) (*flavor.Form, outcome) {
	c := x.classOf(w)
	if w == x.w {
		x.probed = c
	}
	return x.formOf(c), x.evaluateIgnoringKept(c)
}

// countsOf returns the counts of each pod set with which flavors are surveyed: those that it was promised or could
// get, or else the smallest ones, as what they are short of has to become free.
func (x *explainer) countsOf(form *flavor.Form, found outcome) []int32 {
	given := found.choice.Assignments
	switch {
	case x.w.promise != nil:
		given = x.w.promise.given.PodSets
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
func (e *Engine) tentatively(f func()) { e.tree.Try(func() { e.places.Try(f) }) }

func (x *explainer) setReason(why reason.Reason) { x.out.Code, x.out.Message = why.Code, why.Message() }

// whyNow returns the reason for which a workload in line waits, given its outcome.
func (x *explainer) whyNow(found outcome) reason.Reason {
	q := x.w.queue
	if why := x.mustWait(q); why.Code != reason.None && x.waitsForReadyPods(found) {
		x.findUnready()
		return why
	}
	switch {
	case x.out.BehindCode != reason.None:
		return whyBehindStuck(q, x.out.BehindCode)
	case x.out.Behind != nil:
		return whyBehind(q)
	}
	why := x.whyHopeless(x.probed, found)
	if c := x.w.class; c != nil && c.blocked && (found.verdict == admissible || found.verdict == promisable) {
		// There is or will be capacity, but another queue keeps it for its own workloads.
		return reason.Reason{Code: reason.WaitingForQuota, Detail: "the free quota is kept for another ClusterQueue, whose own workloads wait for more of it"}
	}
	if x.isRefusedPreemptor(found) {
		return x.w.refusal.why()
	}
	switch found.verdict {
	case admissible:
		return reason.Reason{Code: reason.PendingEvaluation, Detail: "it fits now: it is admitted next, unless other workloads come first"}
	case promisable, preempting:
		why.Code, why.Preempted = reason.WaitingForPreemptedWorkloads, len(found.victims)
		if why.Preempted == 0 {
			why.Preempted, why.Ending = x.countAwaited()
		}
	}
	return why
}

// countAwaited returns how many of the workloads that still hold what is short are evicted, and how many were deactivated
// or deleted and end on their own account.
func (x *explainer) countAwaited() (evicted, ending int) {
	for _, name := range x.out.Awaits {
		if x.workloads[Key{Namespace: name.Namespace, Name: name.Name}].Inactive {
			ending++
		} else {
			evicted++
		}
	}
	return evicted, ending
}

// findUnready lists the workloads whose pods must be ready first.
func (x *explainer) findUnready() {
	for _, w := range sortedByKey(x.workloads) {
		if w.charged.count.unready && (x.options.BlockUntilReady == BlockAll || w.charged.queue == x.w.queue) {
			x.out.Unready = append(x.out.Unready, reason.NameOf(w.Key))
		}
	}
}

// findStuckHead says of the head of a strict queue that the workload waits behind whether it is never admitted with the
// present quota and nodes.
func (x *explainer) findStuckHead() {
	if x.out.Behind == nil || x.w.queue.Strategy != Strict {
		return
	}
	head := x.workloads[Key{Namespace: x.out.Behind.Namespace, Name: x.out.Behind.Name}]
	if head == nil || head.class == nil {
		return
	}
	c := x.classOf(head)
	if found := x.evaluateIgnoringKept(c); found.verdict == hopeless {
		if code := x.whyHopeless(c, found).Code; code.Never() {
			x.out.BehindCode = code
		}
	}
}

// waitsForReadyPods reports whether the reported reason is that other workloads must be ready first.
func (x *explainer) waitsForReadyPods(found outcome) bool {
	if promised := x.w.promise; promised != nil {
		return fits(x.w.queue.node, promised.usage)
	}
	return !x.wasHopeless(found)
}

// wasHopeless reports whether the workload was found hopeless before its queue had to wait, and still is: then
// that is the reported reason.
func (x *explainer) wasHopeless(found outcome) bool {
	c := x.w.class
	return found.verdict == hopeless && (c != nil && c.blocked || x.w.why.Code == found.choice.Why.Code)
}

// surveyFlavors asks each flavor for these counts of each pod set.
func (x *explainer) surveyFlavors(form *flavor.Form, counts []int32) {
	q := x.w.queue
	var promised []Assignment
	if x.w.promise != nil {
		promised = x.w.promise.given.PodSets
	}
	var needs []quota.Amount
	for i, looks := range form.Survey(counts, x.questionOf(x.first, q), promised) {
		for n := range looks {
			nodes := x.nodesOf(i, &looks[n])
			said := x.verdictOf(&looks[n], x.asksWithoutPlaces(i, counts[i], &looks[n], nodes))
			said.Nodes = nodes
			x.out.PodSets[i].Flavors = append(x.out.PodSets[i].Flavors, said)
			if !looks[n].Nearest {
				continue
			}
			x.nearest = append(x.nearest, &looks[n])
			for at, v := range looks[n].Amounts {
				needs = append(needs, quota.Amount{Index: looks[n].Indices[at], Value: v.Asked})
			}
		}
	}
	x.out.Together = x.together()
	x.needs = quota.VectorOf(needs...)
	for _, a := range x.needs {
		if q.node.Free(a.Index) < a.Value {
			x.short = append(x.short, a.Index)
		}
	}
}

// verdictOf converts the result for a flavor for users. The asks are those that have no places now.
func (x *explainer) verdictOf(l *flavor.FlavorFit, asks []place.Ask) reason.FlavorVerdict {
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
	case l.Mode == flavor.Awaits && (x.w.promise != nil || x.fitOnceGone(asks)):
		out.Fit = reason.FitsAfterEvicted
	default:
		out.Fit = reason.Short
		if l.Mode == flavor.Blocked || l.Mode == flavor.Awaits || x.mustBeFixed {
			break
		}
		wanted := quota.VectorOf(usage...)
		p := x.preemptor(x.first, x.w.queue, wanted, shortOf(x.w.queue.node, wanted))
		victims := x.victimsOf(p)
		if len(victims) > 0 && len(asks) > 0 {
			victims, _ = x.searchOnNodes(p, asks) // others may have to go, or there is no way
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
