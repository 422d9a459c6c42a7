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

// findHolders lists the workloads that hold what is short, and those that would have to end. onNodes says whether the
// workload may have pods on nodes.
func (x *explainer) findHolders(found outcome, onNodes bool) {
	tooLarge := func(l *flavor.FlavorFit) bool { return l.Mode == flavor.NoFit }
	if slices.ContainsFunc(x.nearest, tooLarge) {
		return // it would not help if any of them ended
	}
	if len(x.short) == 0 {
		if onNodes && found.verdict == hopeless {
			x.findEnds(nil, onNodes)
		}
		return
	}
	q := x.w.queue
	explainer := preempt.NewExplainer(&x.tree, x.preemptor(x.first, q, x.needs, x.short), x.holdersOf)
	victims := sets.Set[reason.Name]{}
	for _, v := range x.out.WouldPreempt {
		victims.Insert(v.Name)
	}
	holders := x.holdersOfShort()
	for _, h := range holders {
		x.out.Holders = append(x.out.Holders, x.holderOf(h.workload, explainer, victims))
		if h.leaving() {
			x.out.Awaits = append(x.out.Awaits, reason.NameOf(h.Key))
		}
	}
	if found.verdict != promisable {
		x.findEnds(holders, onNodes)
	}
}

// holdersOfShort returns the workloads without which there would be more of what is short: leaving ones first, then
// by size, descending.
func (x *explainer) holdersOfShort() []holder {
	root := x.w.queue.node.Root()
	var out []holder
	for _, w := range x.workloads {
		q := w.charged.queue
		if w == x.w || q == nil || q.node == nil || q.node.Root() != root {
			continue
		}
		if len(w.charged.held) == 0 && len(w.charged.planned) == 0 || !x.hinders(w) {
			continue
		}
		out = append(out, holder{w, x.hasOfShort(w, x.short[0])})
	}
	slices.SortFunc(out, func(a, b holder) int {
		return cmp.Or(order.TrueFirst(a.leaving(), b.leaving()), cmp.Compare(b.size, a.size), order.CompareKeys(a.Key, b.Key))
	})
	return out
}

// hinders reports whether there would be more of anything that is short if the workload ended.
func (x *explainer) hinders(w *workload) (helps bool) {
	has := slices.ContainsFunc(x.short, func(i quota.Index) bool { return x.hasOfShort(w, i) > 0 })
	if !has {
		return false
	}
	before := x.available()
	x.tree.Try(func() {
		x.end(w)
		helps = !slices.Equal(before, x.available())
	})
	return helps
}

func (x *explainer) hasOfShort(w *workload, i quota.Index) int64 {
	return max(w.charged.held.Of(i), w.charged.planned.Of(i))
}

// available returns what is left of what is short, in both ledgers.
func (x *explainer) available() (out []int64) {
	for _, i := range x.short {
		for _, l := range []quota.Ledger{quota.Held, quota.Planned} {
			out = append(out, x.w.queue.node.Available(l, i))
		}
	}
	return out
}

// end removes the workload from the ledgers. It is called within Try.
func (x *explainer) end(w *workload) {
	x.tree.Release(w.charged.queue.Name, quota.Held, w.charged.held)
	x.tree.Release(w.charged.queue.Name, quota.Planned, w.charged.planned)
}

func (x *explainer) restore(w *workload) {
	x.tree.Charge(w.charged.queue.Name, quota.Held, w.charged.held)
	x.tree.Charge(w.charged.queue.Name, quota.Planned, w.charged.planned)
}

// holderOf describes a holder for users. The victims are those to evict for the explained workload.
func (x *explainer) holderOf(w *workload, explainer *preempt.Explainer, victims sets.Set[reason.Name]) reason.Holder {
	out := reason.Holder{
		Name: reason.NameOf(w.Key), ClusterQueue: w.charged.queue.Name, Priority: w.Priority,
		Holds: corev1.ResourceList{}, Leaving: w.leaving(), Promised: w.promise != nil,
	}
	for _, i := range x.short {
		if amount := x.hasOfShort(w, i); amount > 0 {
			name := corev1.ResourceName(x.tree.Name(i).Resource)
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
	case x.first != x.w && x.precedence.Over(x.first.Key).Has(w.Key):
		out.NotPreemptable = "an earlier workload that asks for the same was evicted for it before, and does not take that back"
	case victims.Has(out.Name):
		out.Preemptable = true
	default:
		// Elastic workloads shrink for a higher priority in their queue regardless of its policy.
		yields := w.charged.queue == x.w.queue && h.Pod != nil && h.Priority < x.w.Priority
		if out.NotPreemptable = explainer.Why(h, w.charged.queue.node); out.NotPreemptable == "" && !yields {
			out.NotPreemptable = x.borrowingBar()
		}
		out.Preemptable = out.NotPreemptable == ""
	}
	return out
}

// borrowingBar returns why the queue may not evict any workload for what it would have to borrow.
func (x *explainer) borrowingBar() string {
	for _, i := range x.short {
		if !mayPreempt(x.w.queue, i, x.needs.Of(i)) {
			return "the workload asks for more than the quota of ClusterQueue " + x.w.queue.Name + ", which may not preempt while it borrows"
		}
	}
	return ""
}
