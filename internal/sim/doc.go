// Package sim drives the engine over a virtual clock: jobs arrive, are admitted, resized and
// end as the engine decides, and nothing else happens than would on a cluster whose API
// server and pods take no time. It answers what a policy does to completion times.
//
// It is pure: the same cluster and jobs give the same result. Tests and benchmarks call it;
// it knows the engine, and neither Kubernetes' API nor how decisions are written.
package sim
