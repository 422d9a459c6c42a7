// Package tracing exports, to an OpenTelemetry collector, how each job got from its creation to its first ready pod:
// one trace per job, with one span for each step.
//
// It watches objects that are in the operator's cache anyway, and writes nothing to the API server. The IDs of a
// trace and its spans are derived from the job's UID and from timestamps in the API, so that an operator that takes
// over or restarts continues the traces. It knows nothing of the engine, and nothing waits for it: what the collector
// does not accept is dropped.
package tracing
