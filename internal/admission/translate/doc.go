// Package translate turns objects of the API server into events of the engine: Workloads, queues, flavors, cohorts,
// nodes and pods. It keeps the objects that the meaning of others depends on, such as the LimitRanges by which the
// requests of a Workload are counted, and remembers since when a node is not ready.
//
// It writes nothing and asks nobody: the caller gives each object that changed, and the time. It also has the way back
// for places: the form that the API has for them.
package translate
