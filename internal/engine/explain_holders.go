package engine

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// holder is another workload that holds what is short.
type holder struct {
	*workload
	size int64
}

// findHolders lists the workloads that hold what is short, and those that would have to end. OnNodes says whether the
// workload may have pods on nodes.
func (ex *explainer) findHolders(found outcome, onNodes bool) {
	tooLarge := func(l *flavor.FlavorFit) bool { return l.Mode == flavor.NoFit }
	if slices.ContainsFunc(ex.nearest, tooLarge) {
		return // it would not help if any of them ended
	}
	if len(ex.short) == 0 {
		if onNodes && found.verdict == hopeless {
			ex.findEnds(nil, onNodes)
		}
		return
	}
	q := ex.w.queue
	explainer := preempt.NewExplainer(ex.engine.tree, ex.engine.evaluator.preemptor(ex.first, q, ex.needs, ex.short), ex.engine.evaluator.holdersOf)
	victims := sets.Set[reason.Name]{}
	for _, v := range ex.out.WouldPreempt {
		victims.Insert(v.Name)
	}
	holders := ex.holdersOfShort()
	for _, h := range holders {
		ex.out.Holders = append(ex.out.Holders, ex.holderOf(h.workload, explainer, victims))
		if h.leaving() {
			ex.out.Awaits = append(ex.out.Awaits, reason.NameOf(h.Key))
		}
	}
	if found.verdict != nominable {
		ex.findEnds(holders, onNodes)
	}
}

// holdersOfShort returns the workloads without which there would be more of what is short: leaving ones first, then
// by size, descending.
func (ex *explainer) holdersOfShort() []holder {
	root := ex.w.queue.node.Root()
	var out []holder
	for _, w := range ex.engine.workloads {
		q := w.charged.queue
		if w == ex.w || q == nil || q.node == nil || q.node.Root() != root {
			continue
		}
		if len(w.charged.held) == 0 && len(w.charged.planned) == 0 || !ex.hinders(w) {
			continue
		}
		out = append(out, holder{w, ex.hasOfShort(w, ex.short[0])})
	}
	slices.SortFunc(out, func(a, b holder) int {
		return cmp.Or(order.TrueFirst(a.leaving(), b.leaving()), cmp.Compare(b.size, a.size), order.CompareKeys(a.Key, b.Key))
	})
	return out
}

// hinders reports whether there would be more of anything that is short if the workload ended.
func (ex *explainer) hinders(w *workload) (helps bool) {
	has := slices.ContainsFunc(ex.short, func(i quota.Index) bool { return ex.hasOfShort(w, i) > 0 })
	if !has {
		return false
	}
	before := ex.available()
	ex.engine.tree.Try(func() {
		ex.end(w)
		helps = !slices.Equal(before, ex.available())
	})
	return helps
}

func (ex *explainer) hasOfShort(w *workload, i quota.Index) int64 {
	return max(w.charged.held.Of(i), w.charged.planned.Of(i))
}

// available returns what is left of what is short, in both ledgers.
func (ex *explainer) available() (out []int64) {
	for _, i := range ex.short {
		for _, l := range []quota.Ledger{quota.Held, quota.Planned} {
			out = append(out, ex.w.queue.node.Available(l, i))
		}
	}
	return out
}

// end removes the workload from the ledgers. It is called within Try.
func (ex *explainer) end(w *workload) {
	ex.engine.tree.Release(w.charged.queue.Name, quota.Held, w.charged.held)
	ex.engine.tree.Release(w.charged.queue.Name, quota.Planned, w.charged.planned)
}

func (ex *explainer) restore(w *workload) {
	ex.engine.tree.Charge(w.charged.queue.Name, quota.Held, w.charged.held)
	ex.engine.tree.Charge(w.charged.queue.Name, quota.Planned, w.charged.planned)
}

// holderOf describes a holder for users. The victims are those to evict for the explained workload.
func (ex *explainer) holderOf(w *workload, explainer *preempt.Explainer, victims sets.Set[reason.Name]) reason.Holder {
	out := reason.Holder{
		Name: reason.NameOf(w.Key), ClusterQueue: w.charged.queue.Name, Priority: w.Priority,
		Holds: corev1.ResourceList{}, Leaving: w.leaving(), Promised: w.nomination != nil,
	}
	for _, i := range ex.short {
		if amount := ex.hasOfShort(w, i); amount > 0 {
			name := corev1.ResourceName(ex.engine.tree.Name(i).Resource)
			sum := out.Holds[name]
			sum.Add(quota.ToQuantity(name, amount))
			out.Holds[name] = sum
		}
	}
	switch h := w.charged.holder; {
	case w.leaving():
		out.NotPreemptable = "is already being evicted"
	case w.isRefused(reductionChange):
		out.NotPreemptable = "the API server rejected a change to it: " + w.refusal.message
	case h == nil:
		out.NotPreemptable = "its admission is being written"
	case ex.first != ex.w && ex.engine.evictions.precedence.Over(ex.first.Key).Has(w.Key):
		out.NotPreemptable = "an earlier workload that asks for the same was evicted for it before, and does not take that back"
	case victims.Has(out.Name):
		out.Preemptable = true
	default:
		// Elastic workloads shrink for a higher priority in their queue regardless of its policy.
		yields := w.charged.queue == ex.w.queue && h.Pod != nil && h.Priority < ex.w.Priority
		if out.NotPreemptable = explainer.Why(h, w.charged.queue.node); out.NotPreemptable == "" && !yields {
			out.NotPreemptable = ex.borrowingBar()
		}
		out.Preemptable = out.NotPreemptable == ""
	}
	return out
}

// borrowingBar returns why the queue may not evict any workload for what it would have to borrow.
func (ex *explainer) borrowingBar() string {
	for _, i := range ex.short {
		if !mayPreempt(ex.w.queue, i, ex.needs.Of(i)) {
			return "the workload asks for more than the quota of ClusterQueue " + ex.w.queue.Name + ", which may not preempt while it borrows"
		}
	}
	return ""
}
