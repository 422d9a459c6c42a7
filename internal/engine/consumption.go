package engine

import (
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// AdmissionFairSharing has the workloads of a ClusterQueue that asks for it ordered by
// what their LocalQueues have used of late.
type AdmissionFairSharing struct {
	// HalfLife is after how long past use counts half; with zero only present use counts.
	HalfLife time.Duration
	// Interval is how often use is sampled. It is longer than zero.
	Interval time.Duration
	// Weights say how much a unit of a resource counts: 1 where nothing is said.
	Weights map[string]float64
}

// account is what a LocalQueue has used of late.
type account struct {
	// consumed is as of sampledAt.
	consumed  fair.Consumption
	sampledAt time.Time
	// entered has what workloads were given since, each once; the queue pays for one
	// interval in advance, so that nobody gets much in before the next sample. prepaid
	// is the sum.
	entered map[Key]quota.Vector
	prepaid sums
	// standing is what it is ordered by: who has less goes first.
	standing float64
}

// ranksByUsage reports whether the LocalQueue is compared with others by its use.
func (e *Engine) ranksByUsage(l *localQueue) bool {
	if e.options.AdmissionFairSharing == nil || l == nil || !l.exists {
		return false
	}
	q := e.queues[l.ClusterQueue]
	return q != nil && q.byUsage
}

// recall takes over what the LocalQueue's status says, unless more is known.
func (e *Engine) recall(l *localQueue) {
	if l.ConsumedAt.After(l.sampledAt) {
		l.consumed, l.sampledAt = maps.Clone(l.Consumed), l.ConsumedAt
	}
	e.stand(l)
}

// enter has the workload's LocalQueue pay in advance for what it is given.
func (e *Engine) enter(w *workload) {
	if l := w.local; e.ranksByUsage(l) {
		l.refund(w.Key)
		if l.entered == nil {
			l.entered = map[Key]quota.Vector{}
		}
		l.entered[w.Key] = e.vectorOf(w.held)
		addTo(&l.prepaid, l.entered[w.Key], 1)
	}
}

// refund is the inverse: what was decided has not come to pass, or is sampled.
func (l *localQueue) refund(key Key) {
	if v, ok := l.entered[key]; ok {
		addTo(&l.prepaid, v, -1)
		delete(l.entered, key)
	}
}

// stand finds the place of the LocalQueue among those of its ClusterQueue again.
func (e *Engine) stand(l *localQueue) {
	if !e.ranksByUsage(l) {
		return
	}
	e.unsampled = true
	if standing := e.standingOf(l); standing != l.standing {
		l.standing = standing
		e.queues[l.ClusterQueue].reorder()
		l.reorderLeft()
	}
}

// reorderLeft does the same where some of the LocalQueue wait yet though it leads elsewhere.
func (l *localQueue) reorderLeft() {
	for _, q := range l.left {
		q.reorder()
	}
}

func (e *Engine) standingOf(l *localQueue) float64 {
	sharing, weight := e.options.AdmissionFairSharing, quota.One
	if l.Weight != nil {
		weight = *l.Weight
	}
	if weight <= 0 {
		return math.Inf(1)
	}
	var sum float64
	if sharing.HalfLife == 0 {
		sum = e.units(l.reserved).Weighed(sharing.Weights)
	} else {
		advance := fair.Fading(sharing.Interval, sharing.HalfLife)
		sum = l.consumed.Weighed(sharing.Weights) + float64(advance*e.units(l.prepaid).Weighed(sharing.Weights))
	}
	return sum / (float64(weight) / float64(quota.One))
}

// reorder has those looked at in the order in which they stand now.
func (q *clusterQueue) reorder() {
	q.ready.Rearrange()
	for _, head := range slices.Clone(q.heads) {
		q.unblock(head) // others may go before it now
	}
	if q.owners.Rearrange(); q.owners.Len() > 0 && q.family != nil {
		q.family.put() // another may have the claim
	}
	if q.head != nil && q.ready.Len() > 0 && q.ready.First().before(q.head) {
		q.unblock(q.head)
	}
	if q.promised.Len() > 0 && q.family != nil {
		q.family.put() // another may go before who was promised something
	}
}

// units adds amounts up by resource, flavors together.
func (e *Engine) units(several ...sums) fair.Consumption {
	amounts := map[string]int64{}
	for _, all := range several {
		for i, sum := range all {
			resource := e.tree.Name(i).Resource
			amounts[resource] = quota.Add(amounts[resource], sum.Value())
		}
	}
	out := fair.Consumption{}
	for resource, amount := range amounts {
		out[resource] = float64(amount)
		if resource == string(corev1.ResourceCPU) {
			out[resource] /= 1000
		}
	}
	return out
}

// sample brings what LocalQueues have used up to date, if that is due.
func (e *Engine) sample(now time.Time) {
	sharing := e.options.AdmissionFairSharing
	if sharing == nil {
		return
	}
	now = now.Round(0) // a replay has no other clock than this one
	next := now.Add(sharing.Interval)
	switch {
	case e.sampleDue.IsZero() && e.unsampled:
		e.catchUp(now)
		e.sampleDue = next
		return
	case e.sampleDue.After(next): // the clock was set back
		e.sampleDue = next
		return
	case e.sampleDue.IsZero() || now.Before(e.sampleDue):
		return
	}
	e.sampleDue = time.Time{}
	for _, l := range e.ranked() {
		if e.sampleOne(l, now) {
			e.sampleDue = next
		}
	}
	e.unsampled = false
}

// ranked lists the LocalQueues that are compared, in the order of names.
func (e *Engine) ranked() (out []*localQueue) {
	for _, key := range slices.SortedFunc(maps.Keys(e.localQueues), order.CompareKeys) {
		if l := e.localQueues[key]; e.ranksByUsage(l) {
			out = append(out, l)
		}
	}
	return out
}

// catchUp brings what the status of LocalQueues remembers up to date, so that all of it
// is as of one time. It is no news to anybody.
func (e *Engine) catchUp(now time.Time) {
	for _, l := range e.ranked() {
		if !l.sampledAt.IsZero() && len(l.entered) == 0 {
			e.age(l, now, e.units(l.reserved))
		}
	}
}

// sampleOne reports whether the LocalQueue has anything to sample the next time. Who
// entered and left since counts as if he were there yet: he pays for one interval, as
// everybody does.
func (e *Engine) sampleOne(l *localQueue, now time.Time) bool {
	for key := range l.entered {
		if w := e.workloads[key]; w != nil && w.local == l && w.held != nil {
			l.refund(key)
		}
	}
	used := e.units(l.reserved, l.prepaid)
	if len(used) > 0 {
		e.touchedLocal.Insert(l.Key) // else what was said last says it all
	}
	l.entered, l.prepaid = nil, nil
	e.age(l, now, used)
	return len(used) > 0 || len(l.consumed) > 0
}

// age lets what was consumed fade until now, and adds what was used since.
func (e *Engine) age(l *localQueue, now time.Time, used fair.Consumption) {
	sharing := e.options.AdmissionFairSharing
	elapsed := sharing.Interval
	if !l.sampledAt.IsZero() {
		elapsed = now.Sub(l.sampledAt)
	}
	l.consumed, l.sampledAt = l.consumed.After(elapsed, sharing.HalfLife, used), now
	e.stand(l)
}

// Consumption is what a LocalQueue has used of late, as of a time.
type Consumption struct {
	Resources fair.Consumption
	At        time.Time
}

// consumptionOf is that of the LocalQueue, nil if it is not compared or was never
// sampled.
func (e *Engine) consumptionOf(l *localQueue) *Consumption {
	if !e.ranksByUsage(l) || l.sampledAt.IsZero() {
		return nil
	}
	return &Consumption{Resources: maps.Clone(l.consumed), At: l.sampledAt}
}
