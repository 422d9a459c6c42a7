package explain

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// What quota alone says is no guarantee: nodes may lack the capacity, or other queues may keep what becomes free. So a
// workload is said to fit after the end of others only if it is found admissible without them.

const (
	// maxEnders bounds how many workloads are tried without, in the order of endersOnNodes.
	maxEnders = 1024
	// maxEndTrials bounds how often the workload is evaluated without others, and maxEndsTried without how many in all.
	// After that some are named whose end is not needed.
	maxEndTrials, maxEndsTried = 96, 10_000
)

// findEnds finds a small set of workloads after whose end the explained one would be admitted, if no other came first.
// The holders are those of what is short.
func (ex *explainer) findEnds(holders []holder, onNodes bool) {
	ends, ok := ex.endsForQuota(holders)
	if !ok {
		return
	}
	ex.tentatively(func() {
		if onNodes {
			ex.Nodes.Departing++ // those tried without are leaving, as nodes see it
			defer func() { ex.Nodes.Departing-- }()
			ex.stay()
		}
		t := &endTrial{explainer: ex}
		if len(ends) == 0 || !t.fitsWithout(ends) {
			if ends = nil; onNodes {
				ends = t.search(ex.endersOnNodes(holders))
			}
		}
	})
	for _, w := range ends {
		ex.out.WouldFitAfter = append(ex.out.WouldFitAfter, reason.Name(w.Key))
	}
}

// endsForQuota returns a small set of holders after whose end the nearest flavors would have the quota; ok is false if
// there is none.
func (ex *explainer) endsForQuota(holders []holder) (ends []*state.Workload, ok bool) {
	fits := func() bool {
		return !slices.ContainsFunc(ex.needs,
			func(a quota.Amount) bool { return ex.w.ClusterQueue.Node.Free(a.Index) < a.Value })
	}
	ex.Tree.Try(func() {
		for _, h := range holders {
			if fits() {
				break
			}
			ex.end(h.Workload)
			ends = append(ends, h.Workload)
		}
		if ok = fits(); !ok {
			return
		}
		for n := len(ends) - 2; n >= 0; n-- { // it did not fit without the last one
			ex.restore(ends[n])
			if fits() {
				ends = slices.Delete(ends, n, n+1)
			} else {
				ex.end(ends[n])
			}
		}
	})
	return ends, ok
}

// stay makes the workloads that are leaving count on nodes, so that the trials show which of them have to be gone.
func (ex *explainer) stay() {
	for _, w := range ex.Workloads {
		if has := w.Placed; has.Leaving && has.By != nil && !w.Gone {
			has.Leaving = false
			ex.Nodes.HoldAs(w, has)
		}
	}
}

// endTrial evaluates the explained workload without others.
type endTrial struct {
	*explainer
	trials, ended int
}

func (e *endTrial) spent() bool { return e.trials >= maxEndTrials || e.ended >= maxEndsTried }

// fitsWithout reports whether the workload would be admitted, and would evict none, if those had ended.
func (e *endTrial) fitsWithout(ended []*state.Workload) (is bool) {
	e.trials++
	e.ended += len(ended)
	q := e.w.ClusterQueue
	heldBack := map[*state.ClusterQueue]quota.Vector{}
	for _, other := range q.Family.Queues {
		heldBack[other] = other.HeldBack
	}
	nodes := &evaluate.NodeCapacity{Evaluator: e.Evaluator}
	e.tentatively(func() {
		e.HoldBacks.ReleaseAll(q.Family)
		for _, w := range ended {
			if w.Charged.Queue != nil {
				e.end(w)
			}
			nodes.Without(&preempt.Holder{Key: w.Key}, preempt.All)
		}
		e.HoldBacks.ChargeAll(q.Family)
		_, found := e.probe(e.w)
		is = found.Verdict == state.Admissible || found.Verdict == state.Nominable && state.Fits(q.Node, found.Choice.Usage)
	})
	for other, v := range heldBack {
		other.HeldBack = v
	}
	return is
}

// search returns a small set of the workloads without which the explained one fits; nil if there is none. The first of
// them are preferred.
func (e *endTrial) search(list []*state.Workload) []*state.Workload {
	if len(list) == 0 || !e.fitsWithout(list) {
		return nil
	}
	var needed []*state.Workload
	for len(list) > 0 && !e.spent() {
		with := func(n int) []*state.Workload { return slices.Concat(list[:n], needed) }
		n := sort.Search(len(list), func(n int) bool { return !e.spent() && e.fitsWithout(with(n)) })
		if n == 0 {
			return needed
		}
		needed, list = append([]*state.Workload{list[n-1]}, needed...), list[:n-1]
	}
	return slices.Concat(list, needed)
}

// endersOnNodes returns the workloads whose end might let the explained one fit: those that are leaving first, then
// domain by domain of the level that it requires, in each the largest first.
func (ex *explainer) endersOnNodes(holders []holder) []*state.Workload {
	levels := ex.requiredLevels()
	type ender struct {
		holder
		domain string
	}
	ofShort := map[*state.Workload]bool{}
	for _, h := range holders {
		ofShort[h.Workload] = true
	}
	var list []ender
	amounts := map[string]int64{}
	for _, w := range ex.Workloads {
		nodes := ex.nodesUnder(w)
		if w == ex.w || w.Gone || len(nodes) == 0 && !ofShort[w] {
			continue
		}
		e := ender{holder: holder{w, 1}}
		if len(ex.needs) > 0 {
			e.size = max(1, hasOf(w, ex.needs[0].Index))
		}
		if len(nodes) > 0 {
			e.domain = ex.domainOf(nodes[0].Node, levels)
		}
		amounts[e.domain] = quota.Add(amounts[e.domain], e.size)
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b ender) int {
		return cmp.Or(order.TrueFirst(a.Leaving(), b.Leaving()), cmp.Compare(amounts[b.domain], amounts[a.domain]),
			cmp.Compare(a.domain, b.domain), cmp.Compare(b.size, a.size), order.CompareKeys(a.Key, b.Key))
	})
	var out []*state.Workload
	for _, e := range list[:min(len(list), maxEnders)] {
		out = append(out, e.Workload)
	}
	return out
}

// nodesUnder returns the nodes that hold places or pods of the workload, or are nominated for it.
func (ex *explainer) nodesUnder(w *state.Workload) (nodes []place.NodeCount) {
	has := w.Held
	if has == nil && w.Nomination != nil {
		has = w.Nomination.Given
	}
	if has == nil {
		return nil
	}
	for i := range has.PodSets {
		a := &has.PodSets[i]
		switch {
		case len(a.Places) > 0:
			nodes = append(nodes, a.Places...)
		case len(w.Within[a.PodSet]) > 0:
			nodes = append(nodes, w.Within[a.PodSet]...)
		case ex.Nodes.PodCounts[w.Key] > 0:
			nodes = append(nodes, ex.Nodes.Places.PodNodes(w.Key, a.PodSet, nil)...)
		}
	}
	return nodes
}

// requiredLevels returns the node labels that make up a domain of the level at which the workload requires one; none if
// it requires none.
func (ex *explainer) requiredLevels() []string {
	for i := range ex.w.Shape.PodSets {
		t := ex.w.Shape.PodSets[i].Topology
		if t == nil || !t.Mandatory {
			continue
		}
		for _, f := range slices.Sorted(maps.Keys(ex.Nodes.Flavors)) {
			levels := ex.Nodes.Topologies[ex.Nodes.Flavors[f].Topology]
			if at := slices.Index(levels, t.Level); at >= 0 {
				return levels[:at+1]
			}
		}
	}
	return nil
}

// domainOf names the domain that a node is in.
func (ex *explainer) domainOf(node string, levels []string) string {
	var values []string
	for _, level := range levels {
		value, _ := ex.Nodes.Places.LabelOf(node, level)
		values = append(values, value)
	}
	return strings.Join(values, "/")
}
