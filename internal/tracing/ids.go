package tracing

import (
	"context"
	"crypto/sha256"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
)

// traceOf is the trace of the job with the UID. A hash, for collectors and samplers take the bits of a trace ID for random, which
// those of a UID are not all.
func traceOf(uid types.UID) trace.TraceID {
	sum := sha256.Sum256([]byte(uid))
	return trace.TraceID(sum[:16])
}

// spanOf is the span of the name in that trace, of the attempt that was given quota at the time; zero for what a job has once.
func spanOf(uid types.UID, name string, attempt time.Time) trace.SpanID {
	text := string(uid) + "\n" + name
	if !attempt.IsZero() {
		text += "\n" + strconv.FormatInt(attempt.Unix(), 10)
	}
	sum := sha256.Sum256([]byte(text))
	return trace.SpanID(sum[:8])
}

// wantedIDs has spans be given the IDs that their context asks for. It implements the SDK's IDGenerator.
type wantedIDs struct{}

type wantedKey struct{}

type wanted struct {
	trace trace.TraceID
	span  trace.SpanID
}

func want(ctx context.Context, w wanted) context.Context {
	return context.WithValue(ctx, wantedKey{}, w)
}

// NewIDs implements the SDK's IDGenerator.
func (wantedIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	w, _ := ctx.Value(wantedKey{}).(wanted)
	return w.trace, w.span
}

// NewSpanID implements the SDK's IDGenerator.
func (wantedIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	w, _ := ctx.Value(wantedKey{}).(wanted)
	return w.span
}
