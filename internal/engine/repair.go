package engine

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// repair replaces places that are no longer valid before any other workload is given capacity, the most urgent
// workload first. Replacements must be close enough to the rest of the gang. If there are none, an elastic workload
// continues without those pods if enough are left, and any other is evicted.
func (p *pass) repair() {
	for _, key := range p.places.TakeInvalid() {
		if w := p.workloads[key]; w != nil {
			p.ailing.Push(w.rank())
		}
	}
	for p.ailing.Len() > 0 && p.budget > 0 {
		if w := p.workloads[p.ailing.Pop().Key]; w != nil {
			p.mend(w)
		}
	}
}

// repairUrgency makes the repair of a gang be written before all new work.
const repairUrgency = math.MaxInt32

// mend repairs the places of one workload.
func (p *pass) mend(w *workload) {
	switch {
	case w.leaving():
		return
	case w.promise != nil:
		w.queue.family.enqueue() // the promise is checked again
		return
	case w.held == nil:
		return
	case w.held.isWithin():
		p.within.Insert(w.Key)
		p.settleWithin()
		return
	case w.assumed != nothing, w.isRefused(aYield), w.isRefused(places):
		p.unmended.Insert(w.Key)
		return
	}
	p.budget--
	mended, ok := p.places.Repair(w.Key)
	switch {
	case !ok && p.shrinkToRest(w):
	case !ok:
		p.evictLost(w)
	case mended.Moved > 0:
		p.replace(w, mended.Assignments)
	}
}

// mendLater queues a workload whose repair had to wait.
func (e *Engine) mendLater(w *workload) {
	if w.assumed != nothing || !e.unmended.Has(w.Key) {
		return
	}
	e.unmended.Delete(w.Key)
	e.ailing.Push(w.rank())
}

// replace gives the workload other places.
func (p *pass) replace(w *workload, found []place.Assignment) {
	given := w.held.at(found)
	w.before, w.held = w.held, given
	w.assumed, w.decidedOn = replaces, w.Version
	p.settle(w)
	p.addDecision(w, repairUrgency, Decision{Replace: given})
}

// at returns the admission at other places.
func (a *Admission) at(found []place.Assignment) *Admission {
	given := *a
	given.PodSets = slices.Clone(given.PodSets)
	for i := range given.PodSets {
		for _, f := range found {
			if f.PodSet == given.PodSets[i].PodSet {
				given.PodSets[i].Places = f.Nodes
			}
		}
	}
	return &given
}

// shrinkToRest makes an elastic workload continue without those of its pods whose places are invalid and cannot be
// replaced. It reports whether enough pods are left for that.
func (p *pass) shrinkToRest(w *workload) bool {
	at := w.elasticSet()
	if at < 0 || !w.Admitted {
		return false
	}
	set := &w.held.PodSets[at]
	var lost []place.NodeCount
	most := int32(0)
	for _, ailing := range p.places.InvalidPlaces(w.Key) {
		if ailing.PodSet == set.PodSet {
			lost = ailing.Nodes
		}
	}
	for _, at := range lost {
		most += at.Count
	}
	most = min(most, set.Count-w.podSet(set.PodSet).Least())
	fewer := int32(sort.Search(int(max(0, most)), func(n int) bool { return p.mendedWithout(w, at, lost, int32(n)+1) != nil })) + 1
	if fewer > most {
		return false
	}
	given, why := p.mendedWithout(w, at, lost, fewer), p.lostWords(w)
	p.resize(w, at, given, Key{})
	p.decisions[len(p.decisions)-1].Resize.Detail = why
	return true
}

// mendedWithout returns the admission with so many of the lost pods fewer and the others at valid places, nil if that
// is not possible.
func (p *pass) mendedWithout(w *workload, at int, lost []place.NodeCount, fewer int32) *Admission {
	given := w.held.sized(at, w.held.PodSets[at].Count-fewer, nil)
	given.PodSets[at].Places = place.Shrink(w.held.PodSets[at].Places, lost, fewer)
	var mended place.RepairResult
	ok := false
	p.places.Try(func() {
		p.places.Hold(w.Key, p.holding(w, placed{by: given}))
		mended, ok = p.places.Repair(w.Key)
	})
	if !ok {
		return nil
	}
	return given.at(mended.Assignments)
}

// evictLost evicts a workload because its nodes failed.
func (p *pass) evictLost(w *workload) {
	detail := p.lostWords(w) // describes its present places
	w.assumed, w.decidedOn, w.lostNodes = evicts, w.Version, true
	p.settle(w)
	p.addDecision(w, repairUrgency, Decision{Evict: &Eviction{
		Cause: preempt.NodeFailures, Path: path(w.queue.node), Detail: detail}})
}

// nodesNamed is how many nodes a message names.
const nodesNamed = 3

// lostWords says which nodes the gang can no longer use.
func (p *pass) lostWords(w *workload) string {
	rest := p.restWords(w)
	lost := p.places.InvalidNodes(w.Key)
	if len(lost) == 0 {
		return "its places are no good any more, " + rest
	}
	where := nodesWords(lost)
	refused := func(node string) bool { return slices.Contains(w.avoid.nodes, node) }
	if w.avoid.why != "" && slices.ContainsFunc(lost, refused) {
		return fmt.Sprintf("kube-scheduler does not put its pods on %s (%s), %s", where, w.avoid.why, rest)
	}
	return fmt.Sprintf("its places on %s are no good any more, %s", where, rest)
}

// restWords says why there are no other places.
func (p *pass) restWords(w *workload) string {
	for i := range w.held.PodSets {
		a := &w.held.PodSets[i]
		if by := p.placedBy(a); len(a.Places) > 0 && !p.places.Places(by) {
			return fmt.Sprintf("and flavor %s has no topology any more by which there could be others", by)
		}
	}
	return "and there is no other room near enough for its pods"
}

// nodesWords names the nodes, or the first of them if there are many.
func nodesWords(nodes []string) string {
	switch n := len(nodes); {
	case n > nodesNamed:
		return fmt.Sprintf("nodes %s and %d more", strings.Join(nodes[:nodesNamed], ", "), n-nodesNamed)
	case n > 1:
		return "nodes " + strings.Join(nodes, ", ")
	}
	return "node " + nodes[0]
}
