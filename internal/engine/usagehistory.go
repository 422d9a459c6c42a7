package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// usageHistory is the recent usage of all LocalQueues, and when it is sampled.
type usageHistory struct {
	options     Options
	ledgers     ledgers
	tallies     *tallies
	queues      map[string]*clusterQueue
	localQueues map[Key]*localQueue
	workloads   map[Key]*workload
	// due is when the usage is sampled next, zero if that is not scheduled; unsampled is set when there is something to
	// sample.
	due       time.Time
	unsampled bool
}

// ranksByUsage reports whether the LocalQueue is ordered by its usage.
func (u *usageHistory) ranksByUsage(l *localQueue) bool {
	if u.options.AdmissionFairSharing == nil || l == nil || !l.exists {
		return false
	}
	q := u.queues[l.ClusterQueue]
	return q != nil && q.byUsage
}

// restore takes the usage from the LocalQueue's status unless the engine has a newer sample.
func (u *usageHistory) restore(l *localQueue) {
	if l.ConsumedAt.After(l.sampledAt) {
		l.consumed, l.sampledAt = maps.Clone(l.Consumed), l.ConsumedAt
	}
	u.updateStanding(l)
}

// prepay charges the workload's LocalQueue in advance for what the workload is given.
func (u *usageHistory) prepay(w *workload) {
	if l := w.local; u.ranksByUsage(l) {
		l.refund(w.Key)
		if l.entered == nil {
			l.entered = map[Key]quota.Vector{}
		}
		l.entered[w.Key] = u.ledgers.vectorOf(w.held)
		addTo(&l.prepaid, l.entered[w.Key], 1)
	}
}

// updateStanding updates the standing of the LocalQueue, and the order of its ClusterQueue.
func (u *usageHistory) updateStanding(l *localQueue) {
	if !u.ranksByUsage(l) {
		return
	}
	u.unsampled = true
	if standing := u.standingOf(l); standing != l.Standing {
		l.rank(standing)
		u.queues[l.ClusterQueue].reordered()
	}
}

// rank gives the LocalQueue another standing. Some of its classes may still wait in the ClusterQueues that it pointed to
// before.
func (l *localQueue) rank(standing float64) {
	var ready []*waiting.Class
	var entitled []*class
	for c := range l.classes {
		if c.IsReady() {
			ready = append(ready, &c.Class)
		}
		if c.entitledAt.In() {
			entitled = append(entitled, c)
			c.queue.entitled.Remove(c)
		}
	}
	waiting.Move(ready, func() { l.Standing = standing })
	for _, c := range entitled {
		c.queue.entitled.Put(c)
	}
	for _, q := range l.left {
		q.reordered()
	}
}

func (u *usageHistory) standingOf(l *localQueue) float64 {
	sharing := u.options.AdmissionFairSharing
	if sharing.HalfLife == 0 {
		return fair.Standing(u.ledgers.units(l.reserved).Weighed(sharing.Weights), l.Weight)
	}
	advance := fair.Fading(sharing.Interval, sharing.HalfLife)
	return fair.Standing(l.consumed.Weighed(sharing.Weights)+float64(advance*u.ledgers.units(l.prepaid).Weighed(sharing.Weights)), l.Weight)
}

// reorder sorts the classes of the queue again after the rule of their order may have changed.
func (cq *clusterQueue) reorder() {
	cq.waits.Rearrange()
	cq.entitled.Rearrange()
	cq.reordered()
}

// reordered does what follows from another order of the queue's classes.
func (cq *clusterQueue) reordered() {
	cq.waits.Reordered()
	if cq.entitled.Len() > 0 && cq.family != nil {
		cq.family.enqueue() // another class may have the hold-back
	}
	if cq.nominated.Len() > 0 && cq.family != nil {
		cq.family.enqueue() // another class may come before those with a promise
	}
}

// sample updates the usage of LocalQueues if a sample is due.
func (u *usageHistory) sample(now time.Time) {
	sharing := u.options.AdmissionFairSharing
	if sharing == nil {
		return
	}
	now = now.Round(0) // drop the monotonic clock, which a replay does not have
	next := now.Add(sharing.Interval)
	switch {
	case u.due.IsZero() && u.unsampled:
		u.catchUp(now)
		u.due = next
		return
	case u.due.After(next): // the clock was set back
		u.due = next
		return
	case u.due.IsZero() || now.Before(u.due):
		return
	}
	u.due = time.Time{}
	for _, l := range u.ranked() {
		if u.sampleOne(l, now) {
			u.due = next
		}
	}
	u.unsampled = false
}

// ranked returns the LocalQueues that are ordered by usage, sorted by key.
func (u *usageHistory) ranked() (out []*localQueue) {
	for _, key := range slices.SortedFunc(maps.Keys(u.localQueues), order.CompareKeys) {
		if l := u.localQueues[key]; u.ranksByUsage(l) {
			out = append(out, l)
		}
	}
	return out
}

// catchUp ages the usage from the status of LocalQueues to the same time. It does not mark their usage as changed.
func (u *usageHistory) catchUp(now time.Time) {
	for _, l := range u.ranked() {
		if !l.sampledAt.IsZero() && len(l.entered) == 0 {
			u.age(l, now, u.ledgers.units(l.reserved))
		}
	}
}

// sampleOne samples a LocalQueue, and reports whether it has anything to sample the next time. A workload that was
// admitted and left again since the last sample is charged for one interval, like any other.
func (u *usageHistory) sampleOne(l *localQueue, now time.Time) bool {
	for key := range l.entered {
		if w := u.workloads[key]; w != nil && w.local == l && w.held != nil {
			l.refund(key)
		}
	}
	used := u.ledgers.units(l.reserved, l.prepaid)
	if len(used) > 0 {
		u.tallies.localUsageChanged.Insert(l.Key) // otherwise the last reported usage still says it all
	}
	l.entered, l.prepaid = nil, nil
	u.age(l, now, used)
	return len(used) > 0 || len(l.consumed) > 0
}

// age decays what was consumed until now, and adds the usage since the last sample.
func (u *usageHistory) age(l *localQueue, now time.Time, used fair.Consumption) {
	sharing := u.options.AdmissionFairSharing
	elapsed := sharing.Interval
	if !l.sampledAt.IsZero() {
		elapsed = now.Sub(l.sampledAt)
	}
	l.consumed, l.sampledAt = l.consumed.After(elapsed, sharing.HalfLife, used), now
	u.updateStanding(l)
}

// consumptionOf returns the usage of the LocalQueue, nil if it is not ordered by usage or was never sampled.
func (u *usageHistory) consumptionOf(l *localQueue) *Consumption {
	if !u.ranksByUsage(l) || l.sampledAt.IsZero() {
		return nil
	}
	return &Consumption{Resources: maps.Clone(l.consumed), At: l.sampledAt}
}
