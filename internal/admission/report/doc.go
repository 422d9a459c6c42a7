// Package report tells users and dashboards what the engine knows: why a Workload waits, the status of queues and
// cohorts, and metrics. Nothing waits for these writes: they yield to the writes of package decisions while the API
// server is slow, and only the newest state of an object is written.
package report
