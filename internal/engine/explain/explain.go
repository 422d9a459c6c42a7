package explain

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/plan"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// View is what an explanation reads of the engine. The evaluator has the tree of queues, the nodes and the workloads.
type View struct {
	*evaluate.Evaluator
	HoldBacks state.HoldBacks
	Planner   *plan.Planner
	// Changed says that the queue has changed and its workloads are not routed again yet.
	Changed func(q *state.ClusterQueue) bool
	// MustWait returns why nothing of the queue is admitted now, and WhyInadmissible why the workload may not be, whatever
	// is free.
	MustWait        func(q *state.ClusterQueue) reason.Reason
	WhyInadmissible func(w *state.Workload) reason.Reason
}

// Explain explains the state of the workload, with current numbers. It changes nothing.
func Explain(view View, w *state.Workload) reason.Explanation {
	ex := &explainer{View: view, w: w, first: w, out: reason.Explanation{
		State: stateOf(w), Priority: w.Priority, Since: w.QueuedAt, LocalQueue: w.Queue, PodSets: requests(w.Shape.PodSets),
	}}
	if w.ClusterQueue != nil {
		ex.setPosition()
	}
	ex.out.AwaitsNodes = view.Nodes.AwaitsNodes(w)
	ex.out.Replacing = view.Nodes.ExplainReplacement(w)
	if w.Held == nil {
		ex.explainWait()
	}
	return ex.out
}

// explainer is one call of Explain.
type explainer struct {
	View
	w   *state.Workload
	out reason.Explanation
	// first is the workload for which others would be evicted: w, or the head of its class.
	first *state.Workload
	// probed is the class of w alone, as it was evaluated.
	probed *state.Class
	// nearest are the flavors that come closest to fitting, needs what they are asked for together, and short what of
	// that is not free.
	nearest []*flavor.FlavorFit
	needs   quota.Vector
	short   []quota.Index
	// mustBeFixed is set if the workload, its queue, or what refuses its admission must be fixed first: until then no
	// eviction and no workload's end would help.
	mustBeFixed bool
}

func stateOf(w *state.Workload) reason.State {
	switch {
	case w.Held != nil && w.Leaving():
		return reason.Leaving
	case w.Counts().Phase == state.Admitted:
		return reason.Admitted
	case w.Held != nil:
		return reason.Reserving
	case w.Nomination != nil:
		return reason.Promised
	case w.Class != nil:
		return reason.Waiting
	default:
		return reason.Aside
	}
}

// requests returns the pod sets, without flavors.
func requests(podSets []flavor.PodSet) []reason.PodSet {
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
	q := ex.w.ClusterQueue
	ex.out.ClusterQueue, ex.out.ByUsage = q.Name, q.RanksByUsage
	if q.Node != nil {
		ex.out.Path = q.Node.Path()
	}
	own := ex.w.Turn()
	first := own
	in := ex.w.Class != nil || ex.w.Nomination != nil
	if in {
		ex.out.Position = 1
	}
	for p := range ex.inLine(q) {
		ex.out.Length++
		if in && p.Before(own, q) {
			ex.out.Position++
		}
		if p.Before(first, q) {
			first = p
		}
	}
	if ex.w.Class == nil || q.Strategy != model.Strict {
		return
	}
	if first.Rank.Key != ex.w.Key {
		ex.out.Behind = new(reason.Name(first.Rank.Key))
	}
}

// inLine returns the workloads that wait for quota in the queue, in no particular order.
func (ex *explainer) inLine(q *state.ClusterQueue) func(yield func(state.Turn) bool) {
	return func(yield func(state.Turn) bool) {
		for _, r := range q.Nominated.All() {
			if !yield(ex.Workloads[r.Key].Turn()) {
				return
			}
		}
		for _, c := range q.Classes {
			for _, r := range c.Workloads() {
				if !yield(state.Turn{Standing: c.LocalQueue.Standing, Rank: r}) {
					return
				}
			}
		}
	}
}

// explainWait explains why the workload has no quota, and what would have to happen.
func (ex *explainer) explainWait() {
	w, q := ex.w, ex.w.ClusterQueue
	if q != nil && (ex.Changed(q)) || w.LocalEntry.On() == w.Local.Unrouted {
		ex.setReason(reason.Reason{Code: reason.PendingEvaluation, Detail: "its queue has changed, and is evaluated next"})
		return
	}
	why := ex.WhyInadmissible(w)
	if q == nil || q.Node == nil {
		ex.setReason(why)
		return
	}
	ex.tentatively(func() {
		if w.Nomination != nil { // it does not have to wait for what is nominated for itself
			ex.Tree.Release(q.Name, quota.Planned, w.Nomination.Usage)
			ex.Nodes.Places.Hold(w.Key, nil)
		} else {
			ex.HoldBacks.ChargeAll(q.Family) // as in a pass
			defer ex.HoldBacks.ReleaseAll(q.Family)
		}
		form, found := ex.probe(w)
		if c := w.Class; c != nil && c.Head().Key != w.Key && found.Verdict == state.Preempting {
			// It gets nothing before the head of its class, which may have been evicted for those that would stop for it.
			head := ex.Workloads[c.Head().Key]
			if _, of := ex.probe(head); of.Verdict == state.Hopeless {
				ex.first, found = head, of
			}
		}
		if w.Nomination != nil && (found.Verdict != state.Admissible || !ex.hasNominated()) {
			// No others are evicted for it, and it is given what is nominated for it, even if other flavors or fewer pods fit
			// now.
			found.Verdict, found.Victims, found.Yields = state.Nominable, nil, nil
			if found.Choice.Why.Code == reason.None {
				found.Choice.Why = w.Nomination.Why
			}
		}
		ex.mustBeFixed = why.Code == reason.Inadmissible || ex.isRefusedPreemptor(found)
		ex.HoldBacks.Release(q)
		ex.surveyFlavors(form, ex.countsOf(form, found))
		if !ex.mustBeFixed {
			ex.findVictims(found)
			if found.Verdict != state.Hopeless || !ex.WhyHopeless(ex.probed, found).Code.Never() {
				ex.findHolders(found, form.OnNodes())
			}
		}
		ex.findStuckHead()
		ex.findStart(found)
		if why.Code == reason.None {
			why = ex.whyNow(found)
		}
	})
	ex.setReason(why)
}

// isRefusedPreemptor reports whether others would be evicted for the workload, but are not, since the API server has
// refused its admission.
func (ex *explainer) isRefusedPreemptor(found evaluate.Outcome) bool {
	return found.Verdict == state.Preempting && ex.w.MustTry()
}

// findVictims lists the workloads that would shrink or be evicted for the workload.
func (ex *explainer) findVictims(found evaluate.Outcome) {
	for _, y := range found.Yields {
		ex.out.WouldShrink = append(ex.out.WouldShrink, reason.Shrink{Name: reason.Name(y.Workload.Key),
			From: y.Workload.Held.PodSets[y.At].Count, To: y.Given.PodSets[y.At].Count})
	}
	for _, v := range found.Victims {
		ex.out.WouldPreempt = append(ex.out.WouldPreempt, reason.Victim{Name: reason.Name(v.Key), Cause: v.Cause.String()})
	}
}

// hasNominated reports whether what is nominated for the workload is available now.
func (ex *explainer) hasNominated() bool {
	places := state.Admissible
	if ex.w.Nomination.Given.OnNodes() {
		places, _ = ex.Nodes.FindNominated(ex.w)
	}
	return places == state.Admissible && state.Fits(ex.w.ClusterQueue.Node, ex.w.Nomination.Usage)
}

// probe evaluates a workload as if it were the next in line.
func (ex *explainer) probe(w *state.Workload) (*flavor.Form, evaluate.Outcome) {
	c := state.Alone(w)
	if w == ex.w {
		ex.probed = c
	}
	return ex.FormOf(c), ex.EvaluateInTurn(c)
}

// countsOf returns the counts of each pod set with which flavors are surveyed: those that are nominated for it or that
// it could get, or else the smallest ones, as what they are short of has to become free.
func (ex *explainer) countsOf(form *flavor.Form, found evaluate.Outcome) []int32 {
	given := found.Choice.Assignments
	switch {
	case ex.w.Nomination != nil:
		given = ex.w.Nomination.Given.PodSets
	case found.Verdict == state.Hopeless:
		return form.ReducedBy(form.Reducible())
	}
	counts := form.Full()
	for i := range given {
		counts[i] = given[i].Count
	}
	return counts
}

// tentatively runs f and rolls back its changes of quota and places.
func (ex *explainer) tentatively(f func()) { ex.Tree.Try(func() { ex.Nodes.Places.Try(f) }) }

func (ex *explainer) setReason(why reason.Reason) {
	ex.out.Code, ex.out.Message = why.Code, why.Message()
}

// whyNow returns the reason for which a workload in line waits, given its outcome.
func (ex *explainer) whyNow(found evaluate.Outcome) reason.Reason {
	q := ex.w.ClusterQueue
	if why := ex.MustWait(q); why.Code != reason.None && ex.waitsForReadyPods(found) {
		ex.findUnready()
		return why
	}
	switch {
	case ex.out.BehindCode != reason.None:
		return state.WhyBehindStuck(q, ex.out.BehindCode)
	case ex.out.Behind != nil:
		return state.WhyBehind(q)
	}
	why := ex.WhyHopeless(ex.probed, found)
	if c := ex.w.Class; c != nil && c.IsBlocked() &&
		(found.Verdict == state.Admissible || found.Verdict == state.Nominable) {
		// There is or will be capacity, but another queue keeps it for its own workloads.
		return reason.Reason{Code: reason.WaitingForQuota,
			Detail: "the free quota is kept for another ClusterQueue, whose own workloads wait for more of it"}
	}
	if ex.isRefusedPreemptor(found) {
		return ex.w.Refusal.Why()
	}
	switch found.Verdict {
	case state.Admissible:
		return reason.Reason{Code: reason.PendingEvaluation,
			Detail: "it fits now: it is admitted next, unless other workloads come first"}
	case state.Nominable, state.Preempting:
		why.Code, why.Preempted = reason.WaitingForPreemptedWorkloads, len(found.Victims)
		if why.Preempted == 0 {
			why.Preempted, why.Ending = ex.countAwaited()
		}
	}
	return why
}

// countAwaited returns how many of the workloads that still hold what is short are evicted, and how many were
// deactivated or deleted and end on their own account.
func (ex *explainer) countAwaited() (evicted, ending int) {
	for _, name := range ex.out.Awaits {
		if ex.Workloads[order.Key(name)].Inactive {
			ending++
		} else {
			evicted++
		}
	}
	return evicted, ending
}

// findUnready lists the workloads whose pods must be ready first.
func (ex *explainer) findUnready() {
	for _, w := range state.SortedByKey(ex.Workloads) {
		if w.Charged.Count.Unready &&
			(ex.Options.BlockUntilReady == model.BlockAll || w.Charged.Queue == ex.w.ClusterQueue) {
			ex.out.Unready = append(ex.out.Unready, reason.Name(w.Key))
		}
	}
}

// findStuckHead says of the head of a strict queue that the workload waits behind whether it is never admitted with the
// present quota and nodes.
func (ex *explainer) findStuckHead() {
	if ex.out.Behind == nil || ex.w.ClusterQueue.Strategy != model.Strict {
		return
	}
	head := ex.Workloads[order.Key(*ex.out.Behind)]
	if head == nil || head.Class == nil {
		return
	}
	c := state.Alone(head)
	if found := ex.EvaluateInTurn(c); found.Verdict == state.Hopeless {
		if code := ex.WhyHopeless(c, found).Code; code.Never() {
			ex.out.BehindCode = code
		}
	}
}

// waitsForReadyPods reports whether the reported reason is that other workloads must be ready first.
func (ex *explainer) waitsForReadyPods(found evaluate.Outcome) bool {
	if nominated := ex.w.Nomination; nominated != nil {
		return state.Fits(ex.w.ClusterQueue.Node, nominated.Usage)
	}
	return !ex.wasHopeless(found)
}

// wasHopeless reports whether the workload was found hopeless before its queue had to wait, and still is: then
// that is the reported reason.
func (ex *explainer) wasHopeless(found evaluate.Outcome) bool {
	c := ex.w.Class
	return found.Verdict == state.Hopeless && (c != nil && c.IsBlocked() || ex.w.Why.Code == found.Choice.Why.Code)
}

// surveyFlavors asks each flavor for these counts of each pod set.
func (ex *explainer) surveyFlavors(form *flavor.Form, counts []int32) {
	q := ex.w.ClusterQueue
	var nominated []flavor.Assignment
	if ex.w.Nomination != nil {
		nominated = ex.w.Nomination.Given.PodSets
	}
	var needs []quota.Amount
	for i, looks := range form.Survey(counts, ex.QuestionOf(ex.first, q), nominated) {
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
		if q.Node.Free(a.Index) < a.Value {
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
	case l.Mode == flavor.Awaits && (ex.w.Nomination != nil || ex.fitOnceGone(asks)):
		out.Fit = reason.FitsAfterEvicted
	default:
		out.Fit = reason.Short
		if l.Mode == flavor.Blocked || l.Mode == flavor.Awaits || ex.mustBeFixed {
			break
		}
		wanted := quota.VectorOf(usage...)
		p := ex.Preemptor(ex.first, ex.w.ClusterQueue, wanted, evaluate.ShortOf(ex.w.ClusterQueue.Node, wanted))
		victims := ex.VictimsOf(p)
		if len(victims) > 0 && len(asks) > 0 {
			victims, _ = ex.SearchOnNodes(p, asks) // others may have to go, or there is no way
		}
		for _, v := range victims {
			out.Fit = reason.FitsByPreemption
			out.WouldPreempt = append(out.WouldPreempt, reason.Name(v.Key))
		}
	}
	return out
}

func amountOf(v reason.Verdict) reason.Amount {
	q := func(amount int64) resource.Quantity {
		return quota.ToQuantity(corev1.ResourceName(v.Resource), amount)
	}
	out := reason.Amount{Resource: v.Resource, Asked: q(v.Asked), Earlier: q(v.Earlier), Free: q(v.Free),
		Missing: q(v.Missing())}
	if v.Capacity != quota.Unlimited {
		out.Capacity = new(q(v.Capacity))
	}
	return out
}
