package engine

import (
	"maps"
	"time"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// usageHistory is the recent usage of all LocalQueues, and when it is sampled.
type usageHistory struct {
	options     Options
	ledgers     state.Ledgers
	tallies     *tallies
	queues      map[string]*state.ClusterQueue
	localQueues map[Key]*state.LocalQueue
	workloads   map[Key]*state.Workload
	// due is when the usage is sampled next, zero if that is not scheduled; unsampled is set when there is something to
	// sample.
	due       time.Time
	unsampled bool
}

// ranksByUsage reports whether the LocalQueue is ordered by its usage.
func (u *usageHistory) ranksByUsage(l *state.LocalQueue) bool {
	if u.options.AdmissionFairSharing == nil || l == nil || !l.Exists {
		return false
	}
	q := u.queues[l.ClusterQueue]
	return q != nil && q.RanksByUsage
}

// restore takes the usage from the LocalQueue's status unless the engine has a newer sample.
func (u *usageHistory) restore(l *state.LocalQueue) {
	if l.ConsumedAt.After(l.SampledAt) {
		l.Recent, l.SampledAt = maps.Clone(l.Consumed), l.ConsumedAt
	}
	u.updateStanding(l)
}

// prepay charges the workload's LocalQueue in advance for what the workload is given.
func (u *usageHistory) prepay(w *state.Workload) {
	if l := w.Local; u.ranksByUsage(l) {
		l.Refund(w.Key)
		if l.Entered == nil {
			l.Entered = map[Key]quota.Vector{}
		}
		l.Entered[w.Key] = u.ledgers.VectorOf(w.Held)
		state.AddTo(&l.Prepaid, l.Entered[w.Key], 1)
	}
}

// updateStanding updates the standing of the LocalQueue, and the order of its ClusterQueue.
func (u *usageHistory) updateStanding(l *state.LocalQueue) {
	if !u.ranksByUsage(l) {
		return
	}
	u.unsampled = true
	if standing := u.standingOf(l); standing != l.Standing {
		l.Rank(standing)
		u.queues[l.ClusterQueue].Reordered()
	}
}

func (u *usageHistory) standingOf(l *state.LocalQueue) float64 {
	sharing := u.options.AdmissionFairSharing
	if sharing.HalfLife == 0 {
		return fair.Standing(u.ledgers.Units(l.Reserved).Weighed(sharing.Weights), l.Weight)
	}
	advance := fair.Fading(sharing.Interval, sharing.HalfLife)
	return fair.Standing(l.Recent.Weighed(sharing.Weights)+
		float64(advance*u.ledgers.Units(l.Prepaid).Weighed(sharing.Weights)), l.Weight)
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
func (u *usageHistory) ranked() (out []*state.LocalQueue) {
	for _, key := range order.SortedKeys(u.localQueues) {
		if l := u.localQueues[key]; u.ranksByUsage(l) {
			out = append(out, l)
		}
	}
	return out
}

// catchUp ages the usage from the status of LocalQueues to the same time. It does not mark their usage as changed.
func (u *usageHistory) catchUp(now time.Time) {
	for _, l := range u.ranked() {
		if !l.SampledAt.IsZero() && len(l.Entered) == 0 {
			u.age(l, now, u.ledgers.Units(l.Reserved))
		}
	}
}

// sampleOne samples a LocalQueue, and reports whether it has anything to sample the next time. A workload that was
// admitted and left again since the last sample is charged for one interval, like any other.
func (u *usageHistory) sampleOne(l *state.LocalQueue, now time.Time) bool {
	for key := range l.Entered {
		if w := u.workloads[key]; w != nil && w.Local == l && w.Held != nil {
			l.Refund(key)
		}
	}
	used := u.ledgers.Units(l.Reserved, l.Prepaid)
	if len(used) > 0 {
		u.tallies.localUsageChanged.Insert(l.Key) // otherwise the last reported usage still says it all
	}
	l.Entered, l.Prepaid = nil, nil
	u.age(l, now, used)
	return len(used) > 0 || len(l.Recent) > 0
}

// age decays what was consumed until now, and adds the usage since the last sample.
func (u *usageHistory) age(l *state.LocalQueue, now time.Time, used fair.Consumption) {
	sharing := u.options.AdmissionFairSharing
	elapsed := sharing.Interval
	if !l.SampledAt.IsZero() {
		elapsed = now.Sub(l.SampledAt)
	}
	l.Recent, l.SampledAt = l.Recent.After(elapsed, sharing.HalfLife, used), now
	u.updateStanding(l)
}

// consumptionOf returns the usage of the LocalQueue, nil if it is not ordered by usage or was never sampled.
func (u *usageHistory) consumptionOf(l *state.LocalQueue) *Consumption {
	if !u.ranksByUsage(l) || l.SampledAt.IsZero() {
		return nil
	}
	return &Consumption{Resources: maps.Clone(l.Recent), At: l.SampledAt}
}

// LocalQueueUsage returns the usage of a LocalQueue, without that of others of the same ClusterQueue; ok is false if
// it does not exist.
func (u *usageHistory) LocalQueueUsage(key Key) (out Usage, ok bool) {
	l := u.localQueues[key]
	if l == nil || !l.Exists {
		return Usage{}, false
	}
	out = u.tallies.usageOf(l.Tally)
	out.Consumption = u.consumptionOf(l)
	return out, true
}
