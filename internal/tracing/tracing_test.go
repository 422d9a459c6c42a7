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

// TestStepsAreChildrenOfTheJobsSpan, with IDs that are derived from the job.
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
		t.Fatalf("%d and %d spans were sent", len(one), len(other))
	}
	step, whole := one[0], one[1]
	if step.Parent.SpanID() != whole.SpanContext.SpanID() || whole.Parent.IsValid() || step.SpanContext.TraceID() != traceOf(jobUID) {
		t.Errorf("the step is %+v below %+v, the whole is %+v", step.SpanContext, step.Parent, whole.SpanContext)
	}
	for i := range one {
		if !one[i].SpanContext.Equal(other[i].SpanContext) {
			t.Errorf("%s is %v once, and %v then", one[i].Name, one[i].SpanContext, other[i].SpanContext)
		}
	}
	if whole.Status.Description != "why" || !step.StartTime.Equal(epoch) || !step.EndTime.Equal(epoch.Add(time.Second)) {
		t.Errorf("sent %+v, and %+v", step, whole)
	}
}

func TestSampling(t *testing.T) {
	sampler, taken := sdktrace.TraceIDRatioBased(0.25), 0
	const jobs = 4000
	for i := range jobs {
		uid := types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", i))
		if sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: traceOf(uid)}).Decision == sdktrace.RecordAndSample {
			taken++
		}
	}
	if taken < jobs/5 || taken > jobs*3/10 {
		t.Errorf("%d of %d were taken", taken, jobs)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for _, right := range []Options{{Endpoint: "http://collector:4318", Sampling: 1}, {Endpoint: "https://c.example.com/v1/traces", Sampling: 0.01}} {
		if err := right.Validate(); err != nil {
			t.Errorf("%+v: %v", right, err)
		}
	}
	for _, wrong := range []Options{{Endpoint: "collector:4317", Sampling: 1}, {Endpoint: "grpc://collector:4317", Sampling: 1}, {Endpoint: "http://", Sampling: 1},
		{Endpoint: "http://collector:4318"}, {Endpoint: "http://collector:4318", Sampling: 1.1}} {
		if wrong.Validate() == nil {
			t.Errorf("%+v is taken", wrong)
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
		t.Error("it was not said")
	}
	clock.SetTime(epoch.Add(errorLogInterval / 2))
	c.Handle(errors.New("refused"))
	if c.last.Load() != epoch.UnixNano() {
		t.Error("it was said again at once")
	}
	clock.SetTime(epoch.Add(errorLogInterval))
	c.Handle(errors.New("refused"))
	if c.last.Load() == epoch.UnixNano() {
		t.Error("it was never said again")
	}
}
