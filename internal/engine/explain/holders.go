package explain

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// holder is another workload that holds what is short.
type holder struct {
	*state.Workload
	size int64
}

// findHolders lists the workloads that hold what is short, and those that would have to end. OnNodes says whether the
// workload may have pods on nodes.
func (ex *explainer) findHolders(found evaluate.Outcome, onNodes bool) {
	tooLarge := func(l *flavor.FlavorFit) bool { return l.Mode == flavor.NoFit }
	if slices.ContainsFunc(ex.nearest, tooLarge) {
		return // it would not help if any of them ended
	}
	if len(ex.short) == 0 {
		if onNodes && found.Verdict == state.Hopeless {
			ex.findEnds(nil, onNodes)
		}
		return
	}
	q := ex.w.ClusterQueue
	explainer := preempt.NewExplainer(ex.Tree, ex.Preemptor(ex.first, q, ex.needs, ex.short), ex.HoldersOf)
	victims := sets.Set[reason.Name]{}
	for _, v := range ex.out.WouldPreempt {
		victims.Insert(v.Name)
	}
	holders := ex.holdersOfShort()
	for _, h := range holders {
		ex.out.Holders = append(ex.out.Holders, ex.holderOf(h.Workload, explainer, victims))
		if h.Leaving() {
			ex.out.Awaits = append(ex.out.Awaits, reason.Name(h.Key))
		}
	}
	if found.Verdict != state.Nominable {
		ex.findEnds(holders, onNodes)
	}
}

// holdersOfShort returns the workloads without which there would be more of what is short: leaving ones first, then
// by size, descending.
func (ex *explainer) holdersOfShort() []holder {
	root := ex.w.ClusterQueue.Node.Root()
	var out []holder
	for _, w := range ex.Workloads {
		q := w.Charged.Queue
		if w == ex.w || q == nil || q.Node == nil || q.Node.Root() != root {
			continue
		}
		if len(w.Charged.Held) == 0 && len(w.Charged.Planned) == 0 || !ex.hinders(w) {
			continue
		}
		out = append(out, holder{w, hasOf(w, ex.short[0])})
	}
	slices.SortFunc(out, func(a, b holder) int {
		return cmp.Or(order.TrueFirst(a.Leaving(), b.Leaving()), cmp.Compare(b.size, a.size), order.CompareKeys(a.Key, b.Key))
	})
	return out
}

// hinders reports whether there would be more of anything that is short if the workload ended.
func (ex *explainer) hinders(w *state.Workload) (helps bool) {
	has := slices.ContainsFunc(ex.short, func(i quota.Index) bool { return hasOf(w, i) > 0 })
	if !has {
		return false
	}
	before := ex.available()
	ex.Tree.Try(func() {
		ex.end(w)
		helps = !slices.Equal(before, ex.available())
	})
	return helps
}

// hasOf returns how much the workload has of an amount, in the ledger in which it has more.
func hasOf(w *state.Workload, i quota.Index) int64 {
	return max(w.Charged.Held.Of(i), w.Charged.Planned.Of(i))
}

// available returns what is left of what is short, in both ledgers.
func (ex *explainer) available() (out []int64) {
	for _, i := range ex.short {
		for _, l := range []quota.Ledger{quota.Held, quota.Planned} {
			out = append(out, ex.w.ClusterQueue.Node.Available(l, i))
		}
	}
	return out
}

// end removes the workload from the ledgers. It is called within Try.
func (ex *explainer) end(w *state.Workload) {
	ex.Tree.Release(w.Charged.Queue.Name, quota.Held, w.Charged.Held)
	ex.Tree.Release(w.Charged.Queue.Name, quota.Planned, w.Charged.Planned)
}

func (ex *explainer) restore(w *state.Workload) {
	ex.Tree.Charge(w.Charged.Queue.Name, quota.Held, w.Charged.Held)
	ex.Tree.Charge(w.Charged.Queue.Name, quota.Planned, w.Charged.Planned)
}

// holderOf describes a holder for users. The victims are those to evict for the explained workload.
func (ex *explainer) holderOf(w *state.Workload, explainer *preempt.Explainer,
	victims sets.Set[reason.Name]) reason.Holder {
	out := reason.Holder{
		Name: reason.Name(w.Key), ClusterQueue: w.Charged.Queue.Name, Priority: w.Priority,
		Holds: corev1.ResourceList{}, Leaving: w.Leaving(), Promised: w.Nomination != nil,
	}
	for _, i := range ex.short {
		if amount := hasOf(w, i); amount > 0 {
			name := corev1.ResourceName(ex.Tree.Name(i).Resource)
			sum := out.Holds[name]
			sum.Add(quota.ToQuantity(name, amount))
			out.Holds[name] = sum
		}
	}
	switch h := w.Charged.Holder; {
	case w.Leaving():
		out.NotPreemptable = "is already being evicted"
	case w.IsRefused(state.ReductionChange):
		out.NotPreemptable = "the API server rejected a change to it: " + w.Refusal.Message
	case h == nil:
		out.NotPreemptable = "its admission is being written"
	case ex.first != ex.w && ex.Precedence.Over(ex.first.Key).Has(w.Key):
		out.NotPreemptable = "an earlier workload that asks for the same was evicted for it before, and does not take that back"
	case victims.Has(out.Name):
		out.Preemptable = true
	default:
		// Elastic workloads shrink for a higher priority in their queue regardless of its policy.
		yields := w.Charged.Queue == ex.w.ClusterQueue && h.Pod != nil && h.Priority < ex.w.Priority
		if out.NotPreemptable = explainer.Why(h, w.Charged.Queue.Node); out.NotPreemptable == "" && !yields {
			out.NotPreemptable = ex.borrowingBar()
		}
		out.Preemptable = out.NotPreemptable == ""
	}
	return out
}

// borrowingBar returns why the queue may not evict any workload for what it would have to borrow.
func (ex *explainer) borrowingBar() string {
	for _, i := range ex.short {
		if !evaluate.MayPreempt(ex.w.ClusterQueue, i, ex.needs.Of(i)) {
			return "the workload asks for more than the quota of ClusterQueue " + ex.w.ClusterQueue.Name +
				", which may not preempt while it borrows"
		}
	}
	return ""
}
