package engine

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// promise is quota that a workload will be given once those have gone who were told
// to. It is charged to what is planned, so that nobody else is given it, and the
// same room is never promised twice.
type promise struct {
	given *Admission
	usage quota.Vector
}

// promiseTo lets the workload wait for what will be given back.
func (e *Engine) promiseTo(w *workload, given *Admission, usage quota.Vector, why reason.Reason) {
	w.promise = &promise{given, usage}
	e.settle(w)
	e.say(w, why)
	q := w.queue
	q.family.promised.Push(w.rank())
	q.promised.Push(w.rank())
	if q.Strategy == Strict {
		e.tellReady(q, behind(q))
	}
}

// breakPromise takes it back. The caller finds the workload another place, and
// settles.
func (e *Engine) breakPromise(w *workload) {
	w.promise = nil
	w.queue.promised.Remove(w.Key)
	if f := w.queue.family; f != nil {
		f.promised.Remove(w.Key)
		f.put()
	}
}

// keepPromises gives those what they were promised for whom there is room now, and
// lets the others look for something else once there is nobody left to wait for.
func (p *pass) keepPromises(f *family) {
	ranks := slices.Clone(f.promised.All())
	slices.SortFunc(ranks, order.Compare)
	for _, r := range ranks {
		w := p.workloads[r.Key]
		given, usage := w.promise.given, w.promise.usage
		switch {
		case fits(w.queue.node, usage):
			p.breakPromise(w)
			f.version++
			p.admit(w, given)
		case f.leaving() == 0:
			p.route(w)
		}
	}
}

// canKeepPromise reports whether keepPromises has something to do: a promise may need
// nobody to go but those who were only promised something themselves.
func (e *Engine) canKeepPromise(f *family) bool {
	if f.promised.Len() == 0 {
		return false
	}
	return f.leaving() == 0 || slices.ContainsFunc(f.promised.All(), func(r order.Rank) bool {
		w := e.workloads[r.Key]
		return fits(w.queue.node, w.promise.usage)
	})
}

// fits reports whether the amounts are free at this moment.
func fits(n *quota.Node, v quota.Vector) bool {
	return !slices.ContainsFunc(v, func(a quota.Amount) bool { return n.Available(quota.Held, a.Index) < a.Value })
}

// promisees are those of the queue who were promised something, in the order of names.
func (e *Engine) promisees(q *clusterQueue) []*workload {
	var out []*workload
	for _, h := range q.holders {
		if h.Promised {
			out = append(out, e.workloads[h.Key])
		}
	}
	slices.SortFunc(out, func(a, b *workload) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return out
}
