package state

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/calendar"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Reservation is the planned start of a workload that does not fit now: the earliest time at which quota and nodes
// would hold it, if all that run end as expected. Later workloads start only if they do not delay it.
type Reservation struct {
	Class *Class
	// Rank is that of the workload, the head of the class.
	Rank order.Rank
	// At is when it would start. It is past if others should have ended before. By says by which ends of others: limits
	// if it is a promise.
	At time.Time
	By calendar.By
	// Given is what it would get then, and Usage the quota of that.
	Given []flavor.Assignment
	Usage quota.Vector
	// OnNodes is set if any of its pods would be placed on nodes.
	OnNodes bool
	// After are the workloads on whose ends the start depends, the first to end first.
	After []order.Key
	// Hindered is set if nothing could be promised, since others might start unplanned that come before it.
	Hindered bool
	// PlannedIn is the state in which it was planned, and Moves how often starts on nodes had been changed by then.
	PlannedIn waiting.State
	Moves     int
}

// IsPromise reports whether the start rests on limits alone, so that no estimate can be wrong about it.
func (r *Reservation) IsPromise() bool { return r.By == calendar.Limits }

// IsWaiting reports whether the workload still waits as the head of its class.
func (r *Reservation) IsWaiting(workloads map[order.Key]*Workload) bool {
	w := workloads[r.Rank.Key]
	return w != nil && w.Class == r.Class && r.Class.Head() == r.Rank
}

// Same reports whether both reserve the same for the same workload.
func (r *Reservation) Same(other *Reservation) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r.Rank.Key == other.Rank.Key && r.At.Equal(other.At) && r.By == other.By &&
		slices.Equal(r.Usage, other.Usage) && slices.EqualFunc(r.Given, other.Given, flavor.Assignment.Equal)
}

// Promise is a start that was promised to a waiting workload: a reservation that rests on limits alone.
type Promise struct {
	// At is the earliest start that was promised.
	At time.Time
	// Nodes and Quota are the versions of nodes and of quota as of the promise, and Limits counts how often the limit of a
	// running workload was raised before. Made is when the start was promised.
	Nodes, Quota, Limits int
	Made                 time.Time
	// Overtaken is set once a workload that came later, and goes before this one, was admitted, or had its start planned.
	Overtaken bool
	// Void is set while a start is planned for a workload that goes first whenever it was queued: of a higher priority, or
	// one that lost its nodes.
	Void bool
	// Late is set once the start was found to be delayed.
	Late bool
}
