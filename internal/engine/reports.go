package engine

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Each waiting workload has a reason, which is found as it is routed or as its class is evaluated, and reported at the end
// of a pass if its status shows another one. What is found for a class is the reason of all its workloads; each is told
// once, and again after it was told otherwise.

// whyBehind is the reason of workloads that wait behind a head of their queue.
func whyBehind(q *clusterQueue) reason.Reason {
	if q.Strategy == ByResource {
		return reason.Reason{Code: reason.WaitingForQuota, Detail: "an earlier workload of ClusterQueue " + q.Name + " waits for some of the same resources"}
	}
	if code := q.stuckHead(); code != reason.None {
		return whyBehindStuck(q, code)
	}
	return reason.Reason{Code: reason.WaitingForQuota, Detail: behindText(q)}
}

// reports has the workloads whose reason to wait must be reported.
type reports struct {
	workloads map[Key]*workload
	// unreported has them, oldest first.
	unreported keyQueue
	// lagging is when reasons began to wait for a pass with budget to spare, zero if none waits.
	lagging time.Time
}

// set sets the reason for which a workload waits, and schedules a report of it if it changed.
func (r *reports) set(w *workload, why reason.Reason) {
	if w.why.Code != why.Code || w.blameChanged(why) {
		r.unreported.add(w.Key)
	}
	w.why = why
}

// blameChanged reports whether the reason names another cause than the one that was reported, with the same code.
func (w *workload) blameChanged(why reason.Reason) bool {
	if why.Code.Actionable() {
		return w.reported != "" && w.reported != why.Message()
	}
	return why.Code == w.reportedWhy.Code && !why.SameBlame(w.reportedWhy)
}

// blamesHead reports whether the workload was told that it waits behind a head of its queue, and is one itself now. The
// code of the reason is the same, but the message would hide what it lacks.
func (w *workload) blamesHead() bool {
	c := w.class
	return c != nil && c.isHead() && c.Head().Key == w.Key && c.queue.saysBehind(w.reported) && w.why.Message() != w.reported
}

// saysBehind reports whether the message says that a workload waits behind a head of the queue.
func (cq *clusterQueue) saysBehind(message string) bool {
	return cq.Strategy == Strict && strings.HasPrefix(message, behindText(cq)) || message == whyBehind(cq).Message()
}

// isHead reports whether the class waits behind no other, in a queue where some do.
func (c *class) isHead() bool {
	return c.queue.waits.Head() == &c.Class || c.queue.Strategy == ByResource && c.IsBlocked() && c.HeldBy() == nil
}

// notifyHead reports to the first workload of a head what it lacks, if it was told that it waits behind another.
func (r *reports) notifyHead(head *class) {
	w := r.workloads[head.Head().Key]
	if r.set(w, head.why); w.blamesHead() {
		r.unreported.add(w.Key)
	}
}

// refresh reports the reason to wait again if the status shows another one: one that changed back before it was
// written, or one from another writer.
func (r *reports) refresh(w *workload) {
	if w.held == nil && w.ReportedCode != reason.None && w.why.Code != w.ReportedCode {
		r.unreported.add(w.Key)
	}
}

// report reports the reason to the workloads of the class that have not been told yet.
func (r *reports) report(c *class, why reason.Reason) {
	for _, key := range c.unreported {
		if w := r.workloads[key]; w != nil && w.class == c {
			r.set(w, why)
		}
	}
	c.unreported = c.unreported[:0]
}

// reportOtherwise reports a reason for which the class is not evaluated. It is reported to few: those that have the
// reason of the last evaluation keep it, unless that names something to fix and may be out of date.
func (r *reports) reportOtherwise(c *class, why reason.Reason) {
	c.reportAgainIf(why)
	if why.Code != c.why.Code {
		c.otherwise, c.otherCode = append(c.otherwise, c.unreported...), why.Code
		if len(c.otherwise) > 2*c.Len() { // most of them do not wait here any more
			c.otherwise = slices.DeleteFunc(c.otherwise, func(key Key) bool {
				w := r.workloads[key]
				return w == nil || w.class != c
			})
		}
	}
	r.report(c, why)
}

// reportAgainIf makes those unreported to which another reason than this one was reported, for which the class is not
// evaluated.
func (c *class) reportAgainIf(why reason.Reason) {
	switch {
	case !c.IsBlocked() && c.why.Code.ToFix():
		c.forgetReason()
	case c.otherCode != why.Code:
		c.reportAgain()
	}
}

// forgetReason makes all workloads of the class unreported, whatever was reported to them.
func (c *class) forgetReason() {
	c.unreported, c.otherwise, c.why = c.unreported[:0], nil, reason.Reason{}
	for _, r := range c.Workloads() {
		c.unreported = append(c.unreported, r.Key)
	}
}

// reportAgain makes those unreported to which another reason was reported.
func (c *class) reportAgain() {
	c.unreported, c.otherwise = append(c.unreported, c.otherwise...), nil
}

// reportReady reports to all workloads of ready classes why none is evaluated, in their order: the order within the
// heap depends on its history.
func (r *reports) reportReady(q *clusterQueue, why reason.Reason) {
	var unreported []*class
	for _, waits := range q.waits.All() {
		c := classOf(waits)
		c.reportAgainIf(why)
		if len(c.unreported) > 0 {
			unreported = append(unreported, c)
		}
	}
	slices.SortFunc(unreported, func(a, b *class) int { return order.Compare(a.Head(), b.Head()) })
	for _, c := range unreported {
		r.reportOtherwise(c, why)
	}
}

// keyQueue is a queue of unique keys. The zero value is empty and ready to use.
type keyQueue struct {
	keys    []Key
	present sets.Set[Key]
}

func (k *keyQueue) len() int { return k.present.Len() }

func (k *keyQueue) add(key Key) {
	if !k.present.Has(key) {
		if k.present == nil {
			k.present = sets.New[Key]()
		}
		k.present.Insert(key)
		k.keys = append(k.keys, key)
	}
}

func (k *keyQueue) drop(key Key) { k.present.Delete(key) }

// take removes and returns the oldest key.
func (k *keyQueue) take() (Key, bool) {
	for len(k.keys) > 0 {
		key := k.keys[0]
		k.keys = k.keys[1:]
		if k.present.Has(key) {
			k.present.Delete(key)
			return key, true
		}
	}
	return Key{}, false
}

// stuckHead returns the code of the head of a strict queue that is never admitted with the present quota and nodes, else
// None.
func (cq *clusterQueue) stuckHead() reason.Code {
	if head := classOf(cq.waits.Head()); cq.Strategy == Strict && head != nil && head.why.Code.Never() {
		return head.why.Code
	}
	return reason.None
}

// behindText begins the message of all that wait behind the head of a strict queue.
func behindText(q *clusterQueue) string {
	return "waits behind the head of ClusterQueue " + q.Name + ", which is StrictFIFO"
}

// whyBehindStuck is whyBehind in a strict queue whose head, for the reason of the code, is never admitted.
func whyBehindStuck(q *clusterQueue, head reason.Code) reason.Reason {
	with := map[reason.Code]string{reason.ExceedsMaxQuota: "this quota", reason.ExceedsNodes: "these nodes"}[head]
	return reason.Reason{Code: reason.WaitingForQuota, Detail: behindText(q) + "; the head never starts with " + with + " (" + string(head) +
		"): it must be changed or deleted, or there must be more"}
}
