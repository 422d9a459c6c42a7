// Package sim simulates the engine on a virtual clock: jobs arrive, are admitted, resized and end as the engine
// decides, as on a cluster whose API server takes no time. It shows the effect of a policy on completion times.
// Cluster.Run is the entry point; jobs come from a Mix or the caller, and a Result has the statistics.
//
// It is deterministic: the same cluster and jobs give the same result. Tests and benchmarks call it. It knows the
// engine, but neither the Kubernetes API nor how decisions are written.
package sim
