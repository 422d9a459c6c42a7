package operators

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// spans is a collector: it takes OTLP over HTTP, and keeps what it is sent by trace and span. What comes twice must be
// the same.
type spans struct {
	t       *testing.T
	url     string
	mu      sync.Mutex
	byTrace map[string]map[string]*otlp.Span
	changed chan struct{}
}

func collect(t *testing.T) *spans {
	s := &spans{t: t, byTrace: map[string]map[string]*otlp.Span{}, changed: make(chan struct{}, 1)}
	server := httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *spans) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var asked collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &asked)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		s.t.Errorf("the collector was asked at %s: %v", r.URL.Path, err)
		http.Error(w, "wrong", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range asked.ResourceSpans {
		for _, by := range of.ScopeSpans {
			for _, span := range by.Spans {
				id := hex.EncodeToString(span.TraceId)
				if s.byTrace[id] == nil {
					s.byTrace[id] = map[string]*otlp.Span{}
				}
				s.byTrace[id][hex.EncodeToString(span.SpanId)] = span
			}
		}
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// until waits until the trace of the job has these spans, and gives them by name.
func (s *spans) until(w *world, job types.UID, names ...string) map[string]*otlp.Span {
	w.Helper()
	sum := sha256.Sum256([]byte(job))
	id := hex.EncodeToString(sum[:16])
	patience := time.NewTimer(harness.Patience)
	defer patience.Stop()
	for {
		found := map[string]*otlp.Span{}
		s.mu.Lock()
		for _, span := range s.byTrace[id] {
			found[span.Name] = span
		}
		s.mu.Unlock()
		missing := 0
		for _, name := range names {
			if found[name] == nil {
				missing++
			}
		}
		if missing == 0 {
			return found
		}
		select {
		case <-s.changed:
		case <-patience.C:
			w.Fatalf("of the spans %q of job %s there are only %v", names, job, found)
		}
	}
}

// TestAJobIsTracedFromItsCreationToItsFirstReadyPod: also where the operator is killed on the way, and another goes on.
func TestAJobIsTracedFromItsCreationToItsFirstReadyPod(t *testing.T) {
	w, to := newWorld(t), collect(t)
	w.podQueue(1)
	first := w.operate("--trace-endpoint", to.url)
	job := w.Job("job", "q", 1)
	w.UntilHeld(job, true)
	w.Create(job)
	pods := w.run("job", 1)
	all := []string{"Job", "queued", "admission", "start", "create pods", "first pod ready"}
	told := to.until(w, job.UID, all...)
	inOrder(w, told, all)

	next := w.Job("next", "q", 1)
	w.Create(next)
	w.UntilWorkloadOf("next", "waits", func(o *kueue.Workload) bool { return len(o.Status.Conditions) > 0 })
	w.SetPodStatus(pods[0], corev1.PodSucceeded, 0)
	pods = w.UntilPodsOf("next", 1)
	before := to.until(w, next.UID, "queued", "admission", "start", "create pods")
	if before["Job"] != nil || before["first pod ready"] != nil {
		t.Errorf("no pod of it is ready, and it is said that %v", before)
	}
	first.End(syscall.SIGKILL)
	second := w.operate("--trace-endpoint", to.url)
	second.AwaitReady(t)
	w.SetPodStatus(pods[0], corev1.PodRunning, 0)
	inOrder(w, to.until(w, next.UID, all...), all)
}

// inOrder checks that the trace is of these spans alone, that all are below the first, within it, and one after the
// other.
func inOrder(w *world, told map[string]*otlp.Span, names []string) {
	w.Helper()
	whole := told[names[0]]
	if len(told) != len(names) || len(whole.ParentSpanId) != 0 {
		w.Errorf("the trace is %v", told)
	}
	last := whole.StartTimeUnixNano
	for _, name := range names[1:] {
		span := told[name]
		if diff := cmp.Diff(whole.SpanId, span.ParentSpanId); diff != "" {
			w.Errorf("%s is not below the whole (-want +got):\n%s", name, diff)
		}
		if span.StartTimeUnixNano < last || span.EndTimeUnixNano < span.StartTimeUnixNano ||
			span.EndTimeUnixNano > whole.EndTimeUnixNano {
			w.Errorf("%s is from %d to %d; the one before began at %d, the whole ended at %d", name, span.StartTimeUnixNano,
				span.EndTimeUnixNano, last, whole.EndTimeUnixNano)
		}
		last = span.StartTimeUnixNano
	}
	for _, attribute := range whole.Attributes {
		if attribute.Key == "muster.cluster_queue" && attribute.Value.GetStringValue() == w.Namespace {
			return
		}
	}
	w.Errorf("the whole does not name its queue: %v", whole.Attributes)
}
