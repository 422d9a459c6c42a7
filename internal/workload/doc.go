// Package workload takes the steps of a Workload's status that more than one room takes: eviction, the return of quota,
// back-off. Whoever takes one takes it whole, so that conditions agree whatever wrote them. It also says whom a ClusterQueue takes.
//
// Everything here is a pure function over the object: no client, no clock. Admission, jobs and the command line import it; it
// imports nothing of internal/.
package workload
