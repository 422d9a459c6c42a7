package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// Each waiting workload has a reason, which is found as it is routed or as its class is evaluated, and reported at the
// end of a pass if its status shows another one. What is found for a class is the reason of all its workloads; each is
// told once, and again after it was told otherwise.

// reports has the workloads whose reason to wait must be reported.
type reports struct {
	workloads map[Key]*state.Workload
	// unreported has them, oldest first.
	unreported keyQueue
	// lagging is when reasons began to wait for a pass with budget to spare, zero if none waits.
	lagging time.Time
}

// set sets the reason for which a workload waits, and schedules a report of it if it changed.
func (r *reports) set(w *state.Workload, why reason.Reason) {
	if why.Code.IsNews(w.Why.Code) || w.BlameChanged(why) {
		r.unreported.add(w.Key)
	}
	w.Why = why
}

// notifyHead reports to the first workload of a head what it lacks, if it was told that it waits behind another.
func (r *reports) notifyHead(head *state.Class) {
	w := r.workloads[head.Head().Key]
	if r.set(w, head.Why); w.BlamesHead() {
		r.unreported.add(w.Key)
	}
}

// refresh reports the reason to wait again if the status shows another one: one that changed back before it was
// written, or one from another writer.
func (r *reports) refresh(w *state.Workload) {
	if w.Held == nil && w.ReportedCode != reason.None && w.Why.Code.IsNews(w.ReportedCode) {
		r.unreported.add(w.Key)
	}
}

// report reports the reason to the workloads of the class that have not been told yet.
func (r *reports) report(c *state.Class, why reason.Reason) {
	for _, key := range c.Unreported {
		if w := r.workloads[key]; w != nil && w.Class == c {
			r.set(w, why)
		}
	}
	c.Unreported = c.Unreported[:0]
}

// reportOtherwise reports a reason for which the class is not evaluated. It is reported to few: those that have the
// reason of the last evaluation keep it, unless that names something to fix and may be out of date.
func (r *reports) reportOtherwise(c *state.Class, why reason.Reason) {
	c.ReportAgainIf(why)
	if why.Code != c.Why.Code {
		c.Otherwise, c.OtherCode = append(c.Otherwise, c.Unreported...), why.Code
		if len(c.Otherwise) > 2*c.Len() { // most of them do not wait here any more
			c.Otherwise = slices.DeleteFunc(c.Otherwise, func(key Key) bool {
				w := r.workloads[key]
				return w == nil || w.Class != c
			})
		}
	}
	r.report(c, why)
}

// reportReady reports to all workloads of ready classes why none is evaluated, in their order: the order within the
// heap depends on its history.
func (r *reports) reportReady(q *state.ClusterQueue, why reason.Reason) {
	var unreported []*state.Class
	for _, waits := range q.Waits.All() {
		c := state.ClassOf(waits)
		c.ReportAgainIf(why)
		if len(c.Unreported) > 0 {
			unreported = append(unreported, c)
		}
	}
	slices.SortFunc(unreported, func(a, b *state.Class) int { return order.Compare(a.Head(), b.Head()) })
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
