// Package place models the nodes of a cluster, what runs on them and the topologies over them. Package find looks for
// places in this model.
//
// The engine reports nodes, pods, flavors and topologies to a Map, and the places that workloads hold, were nominated
// for or are giving up. The state of a Map follows from the last values that were reported, not from their order. A Map
// is made of parts that each own some of the state: Nodes the nodes, Usage what is used of them and what is free,
// ExclusiveLabels the domains that pods have to themselves, Layouts the trees of domains, Shapes what pods may use a
// node, and other parts the pods and the places held.
//
// The package is pure: it uses no client and no clock. It must not know about quota, queues or priorities: who may use
// the capacity is decided elsewhere.
package place
