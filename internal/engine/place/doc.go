// Package place models the nodes of a cluster, what runs on them and the topologies over them, and finds
// places for gangs: nodes for all pods of a workload at once, or for none.
//
// The engine, its only caller, tells a Map about nodes, pods, flavors and topologies, and about the places
// that workloads hold, were promised or are giving up. The state of a Map follows from the last values it
// was given, not from their order. The package is pure: it uses no client and no clock, and equal maps
// give equal answers. It must not know about quota, queues or priorities: who may use the capacity is
// decided elsewhere.
package place
