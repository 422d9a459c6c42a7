package engine

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// evict tells the victim to go; who was only promised something goes back to wait, and whose admission is not written yet may
// never hear of it.
func (p *pass) evict(v preempt.Victim, preemptor *workload) {
	w := p.workloads[v.Key]
	p.precedence.Note(preemptor.Key, w.Key)
	if v.Promised {
		p.route(w)
		return
	}
	eviction := &Eviction{Preemptor: preemptor.Key, PreemptorUID: preemptor.UID, Cause: v.Cause,
		PreemptorPath: path(preemptor.queue.node), Path: path(v.Queue)}
	if w.assumed == admits {
		w.withdrawn = eviction
		p.settle(w)
		p.decided(w, preemptor.Priority, Decision{Withdraw: true})
		return
	}
	p.tellToGo(w, eviction, preemptor.Priority)
}

func (p *pass) tellToGo(w *workload, eviction *Eviction, urgency int32) {
	w.assumed, w.decidedOn, w.growing = evicts, w.Version, nil
	p.settle(w)
	p.decided(w, urgency, Decision{Evict: eviction})
}

// evictWithdrawn has those go who were withdrawn and given their quota all the same, while somebody waits for it. They have not
// stopped leaving in between: were their room not there for who was promised it, he would lose the promise, others for
// whom he had them evicted would be given what they left, and he would evict them again, in turns without end.
func (p *pass) evictWithdrawn() {
	keys := p.givenAllTheSame.UnsortedList()
	slices.SortFunc(keys, order.CompareKeys)
	p.givenAllTheSame.Clear()
	for _, key := range keys {
		w := p.workloads[key]
		eviction := w.withdrawn
		w.withdrawn = nil
		if !w.Evicted && p.isWaitedFor(eviction) {
			p.tellToGo(w, eviction, p.workloads[eviction.Preemptor].Priority)
			continue
		}
		p.settle(w)
	}
}

// followWithdrawn has it decided what becomes of one who was withdrawn, once it is known that he has his quota all the same.
func (e *Engine) followWithdrawn(w *workload) {
	if w.withdrawn != nil && w.assumed == nothing {
		e.givenAllTheSame.Insert(w.Key)
	} else {
		e.givenAllTheSame.Delete(w.Key)
	}
}

// isWaitedFor reports whether the preemptor, or somebody who took from it what it was promised, waits for room.
func (p *pass) isWaitedFor(eviction *Eviction) bool {
	by := p.workloads[eviction.Preemptor]
	if by == nil || by.UID != eviction.PreemptorUID {
		return false
	}
	for key := range p.precedence.Over(by.Key).Union(sets.New(by.Key)) {
		if p.workloads[key].promise != nil {
			return true
		}
	}
	return false
}

// path leads from the root to the node.
func path(n *quota.Node) string {
	var names []string
	for ; n != nil; n = n.Parent() {
		names = append([]string{n.Name()}, names...)
	}
	return "/" + strings.Join(names, "/")
}
