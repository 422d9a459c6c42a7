// Package order says who is served first: priority from the highest down, then
// the time since which a workload waits, then its name so that the order is total.
//
// A Queue keeps ranks in that order, a Heap whatever has an order of its own. Nothing here knows of quota.
package order
