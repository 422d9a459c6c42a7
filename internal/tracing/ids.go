package tracing

import (
	"context"
	"crypto/sha256"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
)

// traceOf returns the trace ID for the job's UID. It is a hash because collectors and samplers assume that all bits
// of a trace ID are random, and the bits of a UID are not.
func traceOf(uid types.UID) trace.TraceID {
	sum := sha256.Sum256([]byte(uid))
	return trace.TraceID(sum[:16])
}

// spanOf returns the ID of the named span in that trace. attempt is the time at which the attempt got its quota, zero
// for the span of the whole job.
func spanOf(uid types.UID, name string, attempt time.Time) trace.SpanID {
	text := string(uid) + "\n" + name
	if !attempt.IsZero() {
		text += "\n" + strconv.FormatInt(attempt.Unix(), 10)
	}
	sum := sha256.Sum256([]byte(text))
	return trace.SpanID(sum[:8])
}

// contextIDs is an IDGenerator that takes the IDs from the context.
type contextIDs struct{}

type idsKey struct{}

type spanIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

func withIDs(ctx context.Context, w spanIDs) context.Context {
	return context.WithValue(ctx, idsKey{}, w)
}

// NewIDs implements the SDK's IDGenerator.
func (contextIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	w, _ := ctx.Value(idsKey{}).(spanIDs)
	return w.trace, w.span
}

// NewSpanID implements the SDK's IDGenerator.
func (contextIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	w, _ := ctx.Value(idsKey{}).(spanIDs)
	return w.span
}
