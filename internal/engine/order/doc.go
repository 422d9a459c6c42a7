// Package order says who is served first: priority from the highest down, then
// the time since which a workload waits, then its name so that the order is total.
//
// It is called by the engine only and knows nothing of quota.
package order
