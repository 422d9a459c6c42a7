// Package plan says when a workload that does not fit now can start, and who may start before it without delaying it.
// It lets the workloads that run end one after the other, in the ledger and on the nodes, until the waiting one fits,
// and undoes all that again. It keeps no state but caches, and decides nothing.
package plan
