package tracing

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

const (
	// maxQueuedSpans bounds the number of spans that wait to be exported, and so the memory; further ones are dropped.
	maxQueuedSpans = 4096
	// batchTimeout is how long a span waits for others, to be exported in one request.
	batchTimeout = 2 * time.Second
	// shutdownTimeout bounds the last export when the operator ends: the release of its lease does not wait longer
	// for it.
	shutdownTimeout = 2 * time.Second
	// errorLogInterval is the least time between two log entries about failing exports.
	errorLogInterval = time.Minute
)

// Options are the parameters of AddTo.
type Options struct {
	// Endpoint is the URL of a collector that accepts OTLP over HTTP, such as http://collector:4318. The standard
	// environment variables (OTEL_EXPORTER_OTLP_HEADERS and the like) configure the rest.
	Endpoint string
	// Sampling is the fraction of jobs that are traced, up to 1 for all. Which jobs these are depends on their UIDs
	// alone.
	Sampling float64
	// Kinds are the kinds of jobs in the manager's cache.
	Kinds []schema.GroupKind
}

// Validate returns an error for invalid options.
func (o Options) Validate() error {
	if at, err := url.Parse(o.Endpoint); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return fmt.Errorf("--trace-endpoint is %q, and must be the URL of a collector that takes OTLP over HTTP, such as http://collector:4318", o.Endpoint)
	}
	if !(o.Sampling > 0 && o.Sampling <= 1) {
		return fmt.Errorf("--trace-sampling is %g, and must be more than 0 and at most 1", o.Sampling)
	}
	return nil
}

// AddTo adds the tracing of jobs to the manager. Replicas that do not lead follow the jobs but export nothing.
func AddTo(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.Endpoint))
	if err != nil {
		return fmt.Errorf("creating the exporter of traces: %w", err)
	}
	otel.SetErrorHandler(&throttledLog{clock: clock.RealClock{}})
	sampler := sdktrace.TraceIDRatioBased(o.Sampling)
	sender := newSender(exporter, sampler)
	kinds := map[schema.GroupKind]bool{}
	for _, kind := range o.Kinds {
		kinds[kind] = true
	}
	t := &watch{client: mgr.GetClient(), scheme: mgr.GetScheme(), kinds: kinds, exporter: sender, clock: clock.RealClock{},
		journeys: map[types.UID]*journey{}, sampled: func(uid types.UID) bool {
			return sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(),
				TraceID: traceOf(uid)}).Decision == sdktrace.RecordAndSample
		}}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &kueue.Workload{}, jobIndex, func(o client.Object) []string {
		return []string{string(jobOf(o.(*kueue.Workload)))}
	}); err != nil {
		return fmt.Errorf("indexing Workloads by the UID of the job: %w", err)
	}
	if err := mgr.Add(everyReplica{func(ctx context.Context) error { return t.start(ctx, mgr) }}); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { // only the leader runs it
		t.startLeading()
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := sender.provider.Shutdown(last); err != nil {
			ctrl.Log.WithName("tracing").Info("the last spans were not sent", "why", err.Error())
		}
		return nil
	}))
}

// everyReplica is a runnable for replicas that do not lead as well.
type everyReplica struct{ run func(context.Context) error }

// Start implements manager.Runnable.
func (e everyReplica) Start(ctx context.Context) error { return e.run(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everyReplica) NeedLeaderElection() bool { return false }

// sender exports spans through the SDK.
type sender struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

func newSender(exporter sdktrace.SpanExporter, sampler sdktrace.Sampler) sender {
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithMaxQueueSize(maxQueuedSpans), sdktrace.WithBatchTimeout(batchTimeout)),
		sdktrace.WithSampler(sampler), sdktrace.WithIDGenerator(contextIDs{}),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "muster-operator"))))
	return sender{provider, provider.Tracer("github.com/musterhq/muster")}
}

// export implements spanExporter. The parent of a step is the span of the whole job, which is exported later.
func (s sender) export(exported span) {
	uid := exported.job.uid
	ids := spanIDs{traceOf(uid), spanOf(uid, exported.name, exported.attempt)}
	ctx := withIDs(context.Background(), ids)
	if !exported.attempt.IsZero() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: ids.trace, SpanID: spanOf(uid, exported.job.kind, time.Time{}),
			TraceFlags: trace.FlagsSampled, Remote: true}))
	}
	attributes := []attribute.KeyValue{attribute.String("k8s.namespace.name", exported.job.namespace),
		attribute.String("muster.job.kind", exported.job.kind), attribute.String("muster.job.name", exported.job.name),
		attribute.String("muster.job.uid", string(uid))}
	for key, value := range exported.attributes {
		if value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	_, out := s.tracer.Start(ctx, exported.name, trace.WithTimestamp(exported.from), trace.WithAttributes(attributes...))
	if exported.failed != "" {
		out.SetStatus(codes.Error, exported.failed)
	}
	out.End(trace.WithTimestamp(exported.to))
}

// throttledLog is an error handler that logs errors of the SDK at a bounded rate: a collector may be unreachable for
// long.
type throttledLog struct {
	clock clock.PassiveClock
	last  atomic.Int64
}

// Handle implements otel.ErrorHandler.
func (t *throttledLog) Handle(err error) {
	now := t.clock.Now().UnixNano()
	if last := t.last.Load(); now-last >= int64(errorLogInterval) && t.last.CompareAndSwap(last, now) {
		ctrl.Log.WithName("tracing").Error(err, "spans are lost: the collector did not take them")
	}
}
