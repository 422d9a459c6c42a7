package tracing

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
)

// TestStepsAreChildrenOfTheJobsSpan: the IDs of the spans are derived from the job, so that they are always the same.
func TestStepsAreChildrenOfTheJobsSpan(t *testing.T) {
	job := identity{kind: "JobSet", namespace: "ns", name: "a", uid: jobUID}
	sent := func() tracetest.SpanStubs {
		exporter := tracetest.NewInMemoryExporter()
		s := newSender(exporter, sdktrace.AlwaysSample())
		s.export(span{job: job, name: stepQueued, from: epoch, to: epoch.Add(time.Second), attempt: epoch})
		s.export(span{job: job, name: job.kind, from: epoch, to: epoch.Add(2 * time.Second), failed: "why"})
		if err := s.provider.ForceFlush(context.Background()); err != nil {
			t.Fatal(err)
		}
		return exporter.GetSpans()
	}
	one, other := sent(), sent()
	if len(one) != 2 || len(other) != 2 {
		t.Fatalf("%d and %d spans were exported, want 2 each", len(one), len(other))
	}
	step, whole := one[0], one[1]
	if step.Parent.SpanID() != whole.SpanContext.SpanID() || whole.Parent.IsValid() ||
		step.SpanContext.TraceID() != traceOf(jobUID) {
		t.Errorf("span of the step = %+v with parent %+v, span of the job = %+v", step.SpanContext, step.Parent,
			whole.SpanContext)
	}
	for i := range one {
		if !one[i].SpanContext.Equal(other[i].SpanContext) {
			t.Errorf("IDs of %s differ: %v and %v", one[i].Name, one[i].SpanContext, other[i].SpanContext)
		}
	}
	if whole.Status.Description != "why" || !step.StartTime.Equal(epoch) || !step.EndTime.Equal(epoch.Add(time.Second)) {
		t.Errorf("exported %+v and %+v", step, whole)
	}
}

func TestSampling(t *testing.T) {
	sampler, sampled := sdktrace.TraceIDRatioBased(0.25), 0
	const jobs = 4000
	for i := range jobs {
		uid := types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", i))
		if sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(),
			TraceID: traceOf(uid)}).Decision == sdktrace.RecordAndSample {
			sampled++
		}
	}
	if sampled < jobs/5 || sampled > jobs*3/10 {
		t.Errorf("%d of %d jobs were sampled, want about a quarter", sampled, jobs)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for _, right := range []Options{{Endpoint: "http://collector:4318", Sampling: 1},
		{Endpoint: "https://c.example.com/v1/traces", Sampling: 0.01}} {
		if err := right.Validate(); err != nil {
			t.Errorf("%+v is rejected: %v", right, err)
		}
	}
	for _, wrong := range []Options{{Endpoint: "collector:4317", Sampling: 1},
		{Endpoint: "grpc://collector:4317", Sampling: 1}, {Endpoint: "http://", Sampling: 1},
		{Endpoint: "http://collector:4318"}, {Endpoint: "http://collector:4318", Sampling: 1.1}} {
		if wrong.Validate() == nil {
			t.Errorf("%+v is accepted, want an error", wrong)
		}
	}
}

func TestExportErrorsAreLoggedAtABoundedRate(t *testing.T) {
	clock := testclock.NewFakePassiveClock(epoch)
	c := &throttledLog{clock: clock}
	for range 3 {
		c.Handle(errors.New("refused"))
	}
	if c.last.Load() != epoch.UnixNano() {
		t.Error("the error was not logged")
	}
	clock.SetTime(epoch.Add(errorLogInterval / 2))
	c.Handle(errors.New("refused"))
	if c.last.Load() != epoch.UnixNano() {
		t.Error("the error was logged again at once")
	}
	clock.SetTime(epoch.Add(errorLogInterval))
	c.Handle(errors.New("refused"))
	if c.last.Load() == epoch.UnixNano() {
		t.Error("the error was not logged again after the interval")
	}
}
