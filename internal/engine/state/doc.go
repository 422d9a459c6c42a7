// Package state is what the engine knows of each workload, class, queue and family of queues, and the rules that follow
// from one of these alone. Packages that place, size and evaluate workloads read it, and the engine changes it. It
// imports no other part of the engine that decides.
package state
