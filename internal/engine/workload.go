package engine

import (
	"time"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// assumption is a decision about a workload of which the API server has not told
// yet.
type assumption int

const (
	nothing assumption = iota
	admits
	replaces
	resizes
	evicts
)

// workload is a Workload and what the engine did with it.
type workload struct {
	Workload
	shape *shape
	local *localQueue
	// queue is the ClusterQueue that it waits in or holds quota of, nil if its
	// LocalQueue does not say.
	queue *clusterQueue
	// class is where it waits to be looked at; nil if it does not.
	class *class
	// waits is its place on a list of its queue, while it holds nothing, belongs that on one
	// of its LocalQueue.
	waits, belongs spot
	// held is what it holds: what the API server says, or what was decided.
	held    *Admission
	assumed assumption
	// withdrawn is, where its admission is not wanted any more, the eviction that follows if that was written all the same.
	withdrawn *Eviction
	// serial is that of the last decision about it, decidedOn the version that was known then.
	serial, decidedOn int64
	// before is what it held before it was given other places or another size, until that is
	// known to be written.
	before *Admission
	// resizedBefore is ResizedAt before the last resize was decided.
	resizedBefore time.Time
	// promise is what it was promised and waits for.
	promise *promise
	// growing is what is planned for it beyond what it holds, as soon as others are gone.
	growing quota.Vector
	// gaveUp tells that others yielded for it to grow, and that it could not all the same.
	gaveUp bool
	// displaced are those who went or yielded for it to grow since it was admitted, with their
	// UIDs.
	displaced map[Key]string
	// vacated are the places of pods that have to go, while it is not known that they have.
	vacated []place.NodeCount
	// listedIn is the queue that has it among its elastic ones.
	listedIn *clusterQueue
	// placed is what the map of places has of it, and avoid the nodes that are no good for
	// it.
	placed placed
	avoid  avoidance
	// within are the nodes on which pods are counted that have domains only, by pod set.
	within map[string][]place.NodeCount
	// lostNodes tells that it was told to go because its nodes failed.
	lostNodes bool
	// refusal is what the API server has against what was decided about it.
	refusal refusal
	why     reason.Reason
	// said is the message of the reason that was returned last.
	said    string
	charged charges
	// gone tells that it counts for nothing any more.
	gone bool
}

func (w *workload) rank() order.Rank {
	return order.Rank{Priority: w.Priority, First: w.LostNodes, Since: w.QueuedAt, Key: w.Key}
}

// leaving reports whether it holds quota and was told to go.
func (w *workload) leaving() bool {
	return w.held != nil && (w.Evicted || w.assumed == evicts || w.withdrawn != nil)
}

// lost reports whether it goes because its nodes failed: what it leaves is promised to
// nobody before it has had its turn.
func (w *workload) lost() bool { return w.leaving() && (w.lostNodes || w.Evicted && w.LostNodes) }

func (ev WorkloadSet) apply(e *Engine) {
	w := e.workloads[ev.Key]
	if w != nil && w.UID != ev.UID {
		e.forget(w)
		w = nil
	}
	switch {
	case w == nil:
		w = &workload{}
		w.waits.w, w.belongs.w = w, w
		e.workloads[ev.Key] = w
	case ev.Version < w.Version:
		return // old news
	}
	shape := e.shapeOf(ev.PodSets)
	if w.shape != nil {
		e.drop(w.shape)
	}
	if w.held == nil && ev.Admission == nil && w.shape == shape && w.waitsLike(ev.Workload) {
		// Nothing that matters: it keeps its place, and what it was promised.
		w.Workload = ev.Workload
		e.sayAgain(w)
		return
	}
	e.leave(w)
	if w.local != nil && w.localKey() != ev.localKey() {
		e.leaveLocal(w)
	}
	if w.Generation != ev.Generation {
		e.precedence.Forget(w.Key)
		e.forgive(w)
	}
	w.Workload, w.shape = ev.Workload, shape
	if w.local == nil {
		w.local = e.local(w.localKey())
		w.local.members.add(&w.belongs)
	}
	if w.why.Code == reason.None {
		w.why, w.said = reason.Reason{Code: ev.Told, Detail: ev.ToldOf}, ev.ToldOf
	}
	e.holdAsTold(w, ev.Admission)
	e.followWithdrawn(w)
	e.route(w)
	e.sayAgain(w)
	if w.listedIn != nil && w.queue.family != nil {
		w.queue.family.put() // it may grow now, or may not any more
	}
}

// holdAsTold has the workload hold what the API server says, nil for nothing, and stands by what was assumed of it only as long as that may be
// from before it was written.
func (e *Engine) holdAsTold(w *workload, told *Admission) {
	was := w.assumed
	switch {
	case told != nil && w.before != nil && told.Equal(w.before):
		// What was assumed outlives news that may be from before it was written, until
		// somebody tells how the write went.
	case told != nil:
		w.held, w.before = told, nil
		if w.assumed != evicts {
			w.assumed = nothing
		}
	case w.assumed != admits:
		if w.held != nil {
			e.forgive(w) // what was refused was about what it had
		}
		w.held, w.before, w.assumed = nil, nil, nothing
	}
	if was != nothing && w.assumed == nothing {
		e.overtaken[w.Key] = w.serial
	}
	w.lostNodes = w.lostNodes && w.held != nil
	if w.held == nil {
		w.growing, w.gaveUp, w.displaced, w.withdrawn = nil, false, nil, nil
	}
}

// sayAgain has the reason to wait returned if the API server has been told another one:
// a word that was taken back before it was written, or that of somebody else.
func (e *Engine) sayAgain(w *workload) {
	if w.held == nil && w.Told != reason.None && w.why.Code != w.Told {
		e.unsaid.add(w.Key)
	}
}

// waitsLike reports whether both wait for the same at the same place. Their pod sets
// are not looked at.
func (w *Workload) waitsLike(other Workload) bool {
	return w.Generation == other.Generation && w.Queue == other.Queue && w.Priority == other.Priority &&
		w.QueuedAt.Equal(other.QueuedAt) && w.Inactive == other.Inactive && w.BacksOff == other.BacksOff &&
		w.Gated == other.Gated && w.Refused == other.Refused && w.Unheld == other.Unheld &&
		w.LostNodes == other.LostNodes
}

func (w *Workload) localKey() Key { return Key{Namespace: w.Key.Namespace, Name: w.Queue} }

func (ev WorkloadGone) apply(e *Engine) {
	if w := e.workloads[ev.Key]; w != nil {
		e.forget(w)
	}
}

// stoodBy is the workload if what is told is of a decision about it that is stood by, nil otherwise.
func (e *Engine) stoodBy(key Key, uid string, serial int64) *workload {
	w := e.workloads[key]
	if w == nil || w.UID != uid || w.assumed == nothing || serial != 0 && serial != w.serial {
		return nil
	}
	return w
}

// TakeOvertaken returns the decisions, by their workloads, that are not stood by any more since it was last called: the API
// server has told of something else, or of what was decided itself, before anybody told what became of them. What is not written
// yet of them must not be: nothing is assumed for it.
func (e *Engine) TakeOvertaken() map[Key]int64 {
	out := e.overtaken
	if len(out) > 0 {
		e.overtaken = map[Key]int64{}
	}
	return out
}

func (ev Written) apply(e *Engine) {
	w := e.stoodBy(ev.Key, ev.UID, ev.Serial)
	if w == nil || ev.Version <= w.decidedOn {
		return // the last is news of an earlier decision
	}
	if w.Version > ev.Version {
		// It was written, and has been taken back since.
		e.disown(w)
		return
	}
	w.Evicted = w.Evicted || w.assumed == evicts
	w.Admitted = w.Admitted || w.assumed == admits && len(w.held.Checks) == 0
	w.LostNodes = w.LostNodes && w.assumed != admits || w.lostNodes
	w.assumed, w.before, w.Version = nothing, nil, ev.Version
	e.followWithdrawn(w)
	e.forgive(w)
	e.settle(w)
	e.mendLater(w)
}

func (ev Refused) apply(e *Engine) {
	if w := e.stoodBy(ev.Key, ev.UID, ev.Serial); w != nil {
		e.holdOff(w, ev)
		e.disown(w)
	}
}

func (ev Failed) apply(e *Engine) {
	if w := e.stoodBy(ev.Key, ev.UID, ev.Serial); w != nil {
		e.disown(w)
	}
}

// disown undoes what was assumed for the workload and has it looked at again.
func (e *Engine) disown(w *workload) {
	if w.refusing() == aYield {
		e.asksOthers(w)
	}
	if w.assumed == admits {
		w.held, w.withdrawn = nil, nil
		w.local.refund(w.Key)
	}
	if w.before != nil {
		w.held, w.before = w.before, nil
	}
	if w.assumed == resizes {
		w.ResizedAt = w.resizedBefore // it has rested all the while
	}
	if w.lostNodes {
		e.unmended.Insert(w.Key) // its places are no better than they were
	}
	w.assumed, w.lostNodes = nothing, false
	e.route(w)
	e.mendLater(w)
}

// forget removes all trace of the workload.
func (e *Engine) forget(w *workload) {
	e.leave(w)
	w.held, w.before, w.queue, w.assumed, w.growing, w.withdrawn = nil, nil, nil, nothing, nil, nil
	w.gone = true
	e.lateWritten.Delete(w.Key)
	e.unmended.Delete(w.Key)
	e.settle(w)
	e.leaveLocal(w)
	e.drop(w.shape)
	e.unsaid.drop(w.Key)
	e.refused.Remove(w.Key)
	e.avoiding.Delete(w.Key)
	e.forgetting.Remove(w.Key)
	e.precedence.Forget(w.Key)
	delete(e.overtaken, w.Key)
	delete(e.workloads, w.Key)
}

func (e *Engine) leaveLocal(w *workload) {
	w.belongs.strike()
	e.dropIfUnused(w.local)
	w.local = nil
}

// leave takes the workload out of where it waits.
func (e *Engine) leave(w *workload) {
	if w.class != nil {
		e.part(w)
	}
	if w.promise != nil {
		e.breakPromise(w)
	}
	w.waits.strike()
}

// route puts a workload that holds nothing to those of its queue who wait, and
// settles what the ledgers have of it.
func (e *Engine) route(w *workload) {
	e.leave(w)
	w.local.settle(w)
	w.queue = nil
	switch {
	case w.held != nil:
		w.queue = e.queue(w.held.ClusterQueue)
	case w.local.exists:
		w.queue = e.queue(w.local.ClusterQueue)
	}
	e.settle(w)
	e.beginToForget(w)
	if w.held != nil {
		w.why = reason.Reason{}
		e.unsaid.drop(w.Key)
		e.mendLater(w)
		return
	}
	if w.queue != nil && e.changed.Has(w.queue.Name) {
		w.queue.unplaced.add(&w.waits) // until it is known what the queue is
		return
	}
	if w.queue != nil {
		w.queue.waiting.add(&w.waits)
	}
	if why := e.unfit(w); why.Code != reason.None {
		e.say(w, why)
		return
	}
	e.join(w, w.queue)
}

// unfit says why the workload cannot be admitted whatever is free.
func (e *Engine) unfit(w *workload) reason.Reason {
	switch {
	case w.Inactive:
		return reason.Reason{Code: reason.Deactivated, Detail: "The workload is deactivated"}
	case w.Unheld:
		return reason.Reason{Code: reason.PendingEvaluation, Detail: "its pods were started before it had quota; it waits until they are stopped"}
	case !w.local.exists:
		return reason.Inadmissiblef("LocalQueue %s doesn't exist", w.Queue)
	case w.local.Terminating:
		return reason.Inadmissiblef("LocalQueue %s is being deleted", w.Queue)
	case w.Refused != "":
		return reason.Inadmissiblef("%s", w.Refused)
	case w.refusal.stands(w.Generation):
		return w.refusal.why()
	case w.local.Held:
		return reason.OnHoldf("LocalQueue %s is stopped", w.Queue)
	}
	if why := w.queue.fault(); why.Code != reason.None {
		return why
	}
	switch {
	case !w.queue.namespaces.Matches(e.namespaces[w.Key.Namespace]):
		return reason.Inadmissiblef("Workload namespace doesn't match ClusterQueue selector")
	case w.BacksOff != "":
		return reason.Reason{Code: reason.PendingEvaluation, Detail: w.BacksOff}
	case w.Gated != "":
		return reason.Reason{Code: reason.AdmissionGated, Detail: "Admission is gated by: " + w.Gated}
	}
	return reason.Reason{}
}

// say notes why a workload waits, to be returned if that is news.
func (e *Engine) say(w *workload, why reason.Reason) {
	if w.why.Code != why.Code || w.blamesAnother(why) {
		e.unsaid.add(w.Key)
	}
	w.why = why
}

// blamesAnother reports whether the reason blames another thing than the one that was said, though both are of one code.
func (w *workload) blamesAnother(why reason.Reason) bool {
	return why.Code.Blames() && w.said != "" && w.said != why.Message()
}
