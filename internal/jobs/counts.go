package jobs

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// countsEvery is how long a status that tells nothing but counts is kept back, unless
// the API says otherwise: what changes meanwhile is told with it. The children of a large job change one by one, and
// a write for each would be most of what the job costs.
const countsEvery = time.Second

// busyWait is how long a status that yields is kept back while the API server has more to do than it can: then most jobs
// have more to tell before anybody looks.
const busyWait = 10 * time.Second

// patience is how long the plan's status may be kept back.
func (p Plan) patience(every time.Duration, busy bool) time.Duration {
	switch {
	case p.StatusFirst:
		return 0
	case p.StatusYields && busy:
		return busyWait
	case p.StatusCanWait:
		return cmp.Or(every, countsEvery)
	}
	return 0
}

// counts knows which jobs have something to be written that can wait, and since when. What it knows is
// lost with the process, and then written at once or a second later. The zero value is
// ready for use.
type counts struct {
	mu  sync.Mutex
	due map[types.NamespacedName]time.Time
}

// keepBack is the plan without its status, and the events that come with it, as long as
// these can wait, and due when they cannot any longer.
func (c *counts) keepBack(job client.Object, p Plan, patience time.Duration, now time.Time) Plan {
	key := client.ObjectKeyFromObject(job)
	if p.Status == nil || patience == 0 || equality.Semantic.DeepEqual(job, p.Status) {
		if p.Status != nil {
			c.forget(key) // it is written with this plan, or there is nothing to tell any more
		}
		return p
	}
	due := c.dueAt(key, now.Add(patience))
	if !now.Before(due) {
		c.forget(key)
		return p
	}
	p.Status = nil
	p.Events = slices.DeleteFunc(p.Events, func(e Event) bool { return e.WithStatus })
	p.DueBy(due)
	return p
}

// keepBackReclaims is the plan without a write that only gives back the quota of pods
// that have ended, as long as that can wait: pods of a job often end together.
func (c *counts) keepBackReclaims(job client.Object, p Plan, now time.Time) Plan {
	key := client.ObjectKeyFromObject(job)
	if !slices.ContainsFunc(p.Writes, givesBackAlone) {
		c.forget(key)
		return p
	}
	due := c.dueAt(key, now.Add(countsEvery))
	if !now.Before(due) {
		c.forget(key)
		return p
	}
	p.Writes = slices.DeleteFunc(p.Writes, givesBackAlone)
	p.DueBy(due)
	return p
}

// withMemoryFirst is the plan with its status before its writes if one of them gives back
// quota of pods that have ended. The status may be all that remembers these ends: a pod that
// is gone before it tells of it would be run again, with quota that others have by then.
func (p Plan) withMemoryFirst() Plan {
	if p.Status != nil && p.StatusOnError == nil && slices.ContainsFunc(p.Writes, givesBack) {
		p.StatusFirst, p.StatusCanWait = true, false
	}
	return p
}

// givesBack reports whether the write tells a Workload that pods have ended.
func givesBack(w Write) bool {
	before, ok := w.base.(*kueue.Workload)
	after, also := w.object.(*kueue.Workload)
	return ok && also && w.verb == verbChangeStatus &&
		!equality.Semantic.DeepEqual(before.Status.ReclaimablePods, after.Status.ReclaimablePods)
}

// givesBackAlone reports whether the write tells a Workload nothing but that pods have
// ended.
func givesBackAlone(w Write) bool {
	before, ok := w.base.(*kueue.Workload)
	after, also := w.object.(*kueue.Workload)
	if !ok || !also || w.verb != verbChangeStatus {
		return false
	}
	same := after.Status
	same.ReclaimablePods = before.Status.ReclaimablePods
	return equality.Semantic.DeepEqual(before.Status, same)
}

// dueAt is when it must be written: at the time, or before if it has
// waited already, or if it was to be written earlier.
func (c *counts) dueAt(key types.NamespacedName, latest time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	due, waits := c.due[key]
	if !waits || latest.Before(due) {
		due = latest
		if c.due == nil {
			c.due = map[types.NamespacedName]time.Time{}
		}
		c.due[key] = due
	}
	return due
}

func (c *counts) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.due, key)
}
