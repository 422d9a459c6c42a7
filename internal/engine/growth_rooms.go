package engine

import (
	"sort"

	"github.com/musterhq/muster/internal/engine/place"
)

// podsOnNodes returns how many more pods of a resizable workload, up to most, fit on nodes in the planned ledger.
func (e *Engine) podsOnNodes(t *resizable, i int, most int32) int32 {
	return e.podsOn(place.Planned, t, i, most)
}

// podsOn is podsOnNodes in either ledger.
func (e *Engine) podsOn(on place.Ledger, t *resizable, i int, most int32) int32 {
	fits := func(pods int32) bool {
		_, ok := e.moreOnNodes(t.members[i], t.at[i], pods, on)
		return ok
	}
	switch {
	case most == 0 || fits(most):
		return most
	case most == 1 || !fits(1): // the usual case on full nodes
		return 0
	}
	return 1 + int32(sort.Search(int(most-2), func(n int) bool { return !fits(int32(n) + 2) }))
}

// rooms says up to which size the nodes hold each resizable workload of a queue, if the others keep theirs. It is found
// for those that are asked for.
type rooms struct {
	engine *Engine
	queue  *clusterQueue
	of     *resizable
	on     place.Ledger
	sizes  map[int]int32
}

func (e *Engine) roomsOf(q *clusterQueue, t *resizable, on place.Ledger) *rooms {
	return &rooms{engine: e, queue: q, of: t, on: on, sizes: map[int]int32{}}
}

// hold reports whether the nodes hold the workload at the index with this size.
func (r *rooms) hold(i int, size int32) bool {
	most, known := r.sizes[i]
	if !known {
		job := &r.of.jobs[i]
		most = job.Size + r.engine.podsOn(r.on, r.of, i, job.Max-job.Size)
		r.sizes[i] = most
	}
	if size > most {
		r.queue.cramped = true
	}
	return size <= most
}
