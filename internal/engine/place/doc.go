// Package place knows the nodes, what is on them and the topologies over them, and
// finds places for gangs: all pods of a workload at once, or none.
//
// A Map is told of nodes, pods, flavors and topologies, and of the places that
// workloads hold, were promised or are leaving; everything it keeps follows from the
// last of what it was told, whatever the order. Only the engine calls it. It is pure:
// it knows no client and no clock, and equal maps give equal answers. It knows nothing
// of quota, queues or priorities: who may have the room is decided elsewhere.
package place
