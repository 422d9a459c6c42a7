package engine

import (
	"slices"
	"sort"
	"time"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// verdict is what can be done for a workload.
type verdict int

const (
	// hopeless: nothing at present.
	hopeless verdict = iota
	// admissible: it fits.
	admissible
	// nominable: it fits once workloads that are already being evicted are gone.
	nominable
	// preempting: it fits once its victims are gone.
	preempting
)

// outcome is the result of evaluating the head of a class.
type outcome struct {
	verdict verdict
	choice  flavor.Choice
	victims []preempt.Victim
	// yields are the workloads that shrink for it.
	yields []yield
	// shrinksEquals is set if some victims have its queue and priority: those shrink for its minimum only.
	shrinksEquals bool
	// lacks is what there has to be more of before it can be admitted; empty if more would not help.
	lacks []quota.FlavorResource
	// couldRun is set if it is known that it would run if nothing else did.
	couldRun bool
	// takesHoldBacks is set if it takes quota that is held back for workloads after it.
	takesHoldBacks bool
	// mayChoose is set if the workload may fit because more is used, not less: nothing can be evicted for the chosen flavors,
	// and others would be chosen if more of these were used; or it may not take what running workloads are to grow into,
	// and would evict workloads of other queues if that were used.
	mayChoose bool
	// fullFlavors are the flavors whose nodes lack capacity.
	fullFlavors []string
	// waitsForGrowth is set if running workloads of higher priority in the queue are to grow into the capacity that it
	// would take, or into what others would give up for it. grower is one for which there is capacity; nil in the latter case.
	waitsForGrowth bool
	grower         *workload
}

// evaluator works out what can be done for waiting workloads. It changes no state but counters and caches.
type evaluator struct {
	options    Options
	tree       *quota.Tree
	queues     map[string]*clusterQueue
	workloads  map[Key]*workload
	precedence *preempt.Precedence
	nodes      *nodes
	ledgers    ledgers
	growths    *growths
	// ranking has the shares that searches for victims compare.
	ranking fair.Ranking
	// evaluations counts the evaluations of classes, and tried the workloads that these have tried at other sizes on
	// nodes.
	evaluations int
	tried       int
}

// cause returns what a hopeless outcome depended on.
func (o *outcome) cause() waiting.Cause {
	out := waiting.Cause{Quota: o.choice.Short, Flavors: o.fullFlavors, Use: o.mayChoose, Growth: o.waitsForGrowth}
	if o.grower != nil {
		out.Grower = o.grower
	}
	return out
}

// offer returns the flavors that the queue offers.
func (ev *evaluator) offer(q *clusterQueue) flavor.Offer {
	return flavor.Offer{Groups: q.Groups, Flavors: ev.nodes.flavors, Topologies: ev.nodes.topologies, IgnoreUndeclared: ev.options.IgnoreUndeclared || q.CoversAll}
}

// evaluate determines what can be done for the head of the class, without changing anything. A smaller count than
// requested is considered only if the full one is not available.
func (ev *evaluator) evaluate(c *class) outcome {
	ev.evaluations++
	form := ev.formOf(c)
	w := ev.workloads[c.Head().Key]
	full := ev.considerTaking(w, c, form.Full())
	reducible := form.Reducible()
	var any *anySearch
	if form.Together() > 0 && reducible > 0 && full.verdict != admissible && full.verdict != nominable {
		var found outcome
		if found, any = ev.anyThatFit(w, c); found.verdict != hopeless {
			return found
		}
		any.note(full)
	}
	if full.verdict != admissible && full.verdict != nominable && !full.sparesQueue(c.queue) {
		if found, yields := ev.byYielding(w, c); yields && (len(found.victims) == 0 || full.stopsAny()) {
			return found
		}
	}
	if reducible == 0 || full.verdict != hopeless && !full.shrinksEquals {
		return full
	}
	if any != nil {
		return ev.anyByEviction(any)
	}
	var best outcome
	sort.Search(int(reducible), func(fewer int) bool {
		found := ev.considerTaking(w, c, form.ReducedBy(int64(fewer)+1))
		if found.verdict == hopeless || found.shrinksEquals {
			return false
		}
		best = found
		return true
	})
	if best.verdict == hopeless {
		// Report what the smallest size was short of: that is what there has to be more of.
		best = ev.considerTaking(w, c, form.ReducedBy(reducible))
		best.mayChoose = best.mayChoose || full.mayChoose
	}
	return best
}

// considerTaking is consider, and does not have elastic workloads of the queue give up what running ones of higher
// priority would then grow into.
func (ev *evaluator) considerTaking(w *workload, c *class, counts []int32) outcome {
	found := ev.consider(w, c, counts)
	if found.verdict == preempting && ev.takesFromGrowth(w, c.queue, &found) {
		return ev.growthOutcome(found.choice, nil,
			"what running workloads in the same ClusterQueue would give up for it is kept for those of higher priority, which could grow")
	}
	return found
}

// consider determines what can be done for these counts of each pod set.
func (ev *evaluator) consider(w *workload, c *class, counts []int32) outcome {
	found := ev.considerCapacity(w, c, counts)
	if found.verdict != admissible && found.verdict != nominable {
		return found
	}
	if grower := ev.growths.blocksGrowth(w, c.queue, found.choice); grower != nil {
		return ev.growthOutcome(found.choice, grower,
			"the free quota is kept for running workloads of higher priority in the same ClusterQueue, which are about to grow")
	}
	return found
}

// considerCapacity is consider without regard to workloads that are to grow.
func (ev *evaluator) considerCapacity(w *workload, c *class, counts []int32) outcome {
	if ev.formOf(c).OnNodes() {
		return ev.considerPlaces(w, c, counts)
	}
	question := ev.questionOf(w, c.queue)
	found := ev.resolve(w, c, counts, ev.formOf(c).Assign(counts, question))
	if found.verdict != hopeless {
		return found
	}
	if found.choice.Why.Code != reason.WaitingForQuota && !ev.formOf(c).CouldFit(counts, c.queue.node) {
		return found // no other choice of flavors would fit either
	}
	split := ev.formOf(c).Split(counts, question)
	if split.Mode != flavor.NoFit {
		return ev.resolve(w, c, counts, split)
	}
	found.choice.Short = quota.Union(found.choice.Short, split.Short...)
	if found.choice.Why.Code == reason.ExceedsMaxQuota && split.Why.Code != reason.None {
		found.choice.Why = split.Why // it may fit with other flavors once other workloads end
	}
	return found
}

// questionOf returns the parameters of a flavor assignment for the workload.
func (ev *evaluator) questionOf(w *workload, q *clusterQueue) flavor.Question {
	return flavor.Question{
		Queue: q.node, Fungibility: q.Fungibility,
		MayPreempt: func(i quota.Index, amount int64) bool { return mayPreempt(q, i, amount) },
		Preempt:    func(i quota.Index, amount int64) (flavor.Mode, int) { return ev.couldPreempt(w, q, i, amount) },
	}
}

// resolve determines what can be done with a choice of flavors.
func (ev *evaluator) resolve(w *workload, c *class, counts []int32, choice flavor.Choice) outcome {
	q := c.queue
	lacks := ev.lacksOf(c, counts, choice)
	switch choice.Mode {
	case flavor.Fits:
		return outcome{verdict: admissible, choice: choice}
	case flavor.Awaits:
		return outcome{verdict: nominable, choice: choice}
	case flavor.Preempts, flavor.Reclaims:
		if victims := ev.victims(w, q, choice.Usage, shortOf(q.node, choice.Usage)); len(victims) > 0 {
			return ev.preempting(q, choice, victims)
		}
		// Whether it may evict others depends on all that it requests, not only on what was short.
		choice.Short = quota.Union(choice.Short, choice.Usage.Indices()...)
		return outcome{choice: choice, lacks: lacks, mayChoose: ev.formOf(c).HasChoice()}
	}
	return outcome{choice: choice, lacks: lacks}
}

// lacksOf returns what there has to be more of for a choice that does not fit now; nothing if more would not help. It
// matters only in a queue by resource.
func (ev *evaluator) lacksOf(c *class, counts []int32, choice flavor.Choice) []quota.FlavorResource {
	if c.queue.Strategy != ByResource || choice.Mode >= flavor.Awaits || !c.form.CouldFit(counts, c.queue.node) {
		return nil
	}
	out := make([]quota.FlavorResource, len(choice.Short))
	for n, i := range choice.Short {
		out[n] = ev.tree.Name(i)
	}
	return out
}

// preempting returns the outcome of a choice for which the victims stop or shrink.
func (ev *evaluator) preempting(q *clusterQueue, choice flavor.Choice, victims []preempt.Victim) outcome {
	choice.Borrowing = ev.borrowingWithout(q, choice.Usage, victims)
	out := outcome{verdict: preempting, choice: choice}
	for _, v := range victims {
		if v.Stops() {
			out.victims = append(out.victims, v)
			continue
		}
		out.shrinksEquals = out.shrinksEquals || v.Equal
		w := ev.workloads[v.Key]
		at := w.elasticSet()
		out.yields = append(out.yields, yield{w, at, w.held.Sized(at, w.held.PodSets[at].Count-v.Gives, nil)})
	}
	return out
}

// stopsAny reports whether the outcome stops any workload, or is not a preemption at all.
func (o *outcome) stopsAny() bool { return o.verdict != preempting || len(o.victims) > 0 }

// sparesQueue reports whether the outcome only shrinks workloads, all of them of other queues.
func (o *outcome) sparesQueue(q *clusterQueue) bool {
	return !o.stopsAny() && !slices.ContainsFunc(o.yields, func(y yield) bool { return y.w.queue == q })
}

// shortOf returns the amounts that do not fit even once all evicted workloads are gone.
func shortOf(n *quota.Node, v quota.Vector) []quota.Index {
	var short []quota.Index
	for _, a := range v {
		if n.Available(quota.Planned, a.Index) < a.Value {
			short = append(short, a.Index)
		}
	}
	return short
}

// mayPreempt reports whether the queue's workloads may evict others for the amount. Beyond the queue's own quota they
// may do so only if they may preempt while borrowing, which under fair sharing is like any other reclaim, or if a
// cohort below the root has that much quota. What the queue does not name does not matter: the search for victims asks
// whether it is within what it names.
func mayPreempt(q *clusterQueue, i quota.Index, amount int64) bool {
	whileBorrowing := q.Preemption.MayWhileBorrowing() || q.fairly && q.Preemption.Reclaim != preempt.Never
	return q.Preemption.Allows() && (whileBorrowing || !q.node.Names(i) || withinBelowRoot(q.node, i, amount))
}

// couldPreempt returns how well one amount would fit if nothing else were short, and the level that it would then be
// borrowed from, as in Choice.Borrowing.
func (ev *evaluator) couldPreempt(w *workload, q *clusterQueue, i quota.Index, amount int64) (m flavor.Mode, borrowing int) {
	wanted := quota.VectorOf(quota.Amount{Index: i, Value: amount})
	victims := ev.victims(w, q, wanted, []quota.Index{i})
	switch {
	case len(victims) == 0:
		return flavor.Blocked, q.node.Borrows(quota.Planned, i, amount)
	case slices.ContainsFunc(victims, func(v preempt.Victim) bool { return v.Cause != preempt.InQueue }):
		m = flavor.Reclaims
	default:
		m = flavor.Preempts
	}
	return m, ev.borrowingWithout(q, wanted, victims)
}

// borrowingWithout returns the level, as in Choice.Borrowing, from which the queue borrows the amounts once the
// victims are gone.
func (ev *evaluator) borrowingWithout(q *clusterQueue, usage quota.Vector, victims []preempt.Victim) (height int) {
	ev.tree.Try(func() {
		for _, v := range victims {
			ev.tree.Release(v.Queue.Name(), quota.Planned, v.Releases())
		}
		named := q.node.NamesAny(usage)
		for _, a := range usage {
			if !named || q.node.Names(a.Index) {
				height = max(height, q.node.Borrows(quota.Planned, a.Index, a.Value))
			}
		}
	})
	return height
}

// withinBelowRoot reports whether the quota of the queue, or of a cohort above it other than the root, is at least
// the amount.
func withinBelowRoot(n *quota.Node, i quota.Index, amount int64) bool {
	for ; ; n = n.Parent() {
		if (n.IsQueue() || n.Parent() != nil) && n.Quota(i) >= amount {
			return true
		}
		if n.Parent() == nil {
			return false
		}
	}
}

// victims returns the workloads to evict so that the workload can have the amounts.
func (ev *evaluator) victims(w *workload, q *clusterQueue, usage quota.Vector, short []quota.Index) []preempt.Victim {
	return ev.victimsOf(ev.preemptor(w, q, usage, short))
}

// preemptor describes the workload as one that wants the amounts, some of which are short.
func (ev *evaluator) preemptor(w *workload, q *clusterQueue, usage quota.Vector, short []quota.Index) preempt.Preemptor {
	return preempt.Preemptor{
		Queue: q.node, Policy: q.Preemption, Priority: w.Priority, QueuedAt: w.QueuedAt, Usage: usage, Short: short,
		Spared: ev.precedence.Over(w.Key), Fair: ev.strategies(), Ranking: &ev.ranking, StandingOf: ev.queueStanding,
	}
}

// queueStanding returns the Standing of a queue.
func (ev *evaluator) queueStanding(n *quota.Node) preempt.Standing {
	if q := ev.queues[n.Name()]; q != nil {
		return q.Preemption.Standing
	}
	return preempt.Standing{}
}

// strategies returns the strategies of fair sharing, nil if it is off.
func (ev *evaluator) strategies() []preempt.Strategy {
	if ev.options.FairSharing == nil {
		return nil
	}
	return ev.options.FairSharing.Strategies
}

// serve carries out the outcome for the head of a queue.
func (p *pass) serve(c *contestant) {
	w := p.engine.workloads[c.Rank.Key]
	p.budget -= 1 + len(c.victims) + len(c.yields)
	p.engine.leaveClass(w)
	c.queue.family.version++
	given := &Admission{ClusterQueue: c.queue.Name, PodSets: c.choice.Assignments}
	given.Checks = c.queue.checksFor(given)
	if c.verdict == preempting && w.mustTry() {
		p.try(w, given)
		return
	}
	c.queue.markPaid(c.class, c.choice.Usage)
	if c.verdict == admissible {
		p.admit(w, given)
		return
	}
	for _, v := range c.victims {
		p.evictions.evict(v, w)
	}
	for _, y := range c.yields {
		p.resize(y.w, y.at, y.given, w.Key)
	}
	why := c.choice.Why
	why.Code, why.Preempted = reason.WaitingForPreemptedWorkloads, len(c.victims)
	p.engine.nominate(w, given, c.choice.Usage, why)
}

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
