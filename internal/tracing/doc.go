// Package tracing tells an OpenTelemetry collector how each job came from its creation to its first ready pod: one trace a
// job, one span for each step of the way.
//
// It watches what the operator's cache has anyway, and writes nothing to the API server. What identifies a trace and its spans
// follows from the job's UID and from times that the API keeps, so that an operator that takes over, or starts again, goes
// on with the traces of the last one. It knows nothing of the engine, and nobody waits for it: what the collector does not
// take is dropped.
package tracing
