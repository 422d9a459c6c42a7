package metrics_test

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/metrics/metricstest"
)

// The metrics are declared in package variables, as other packages do.
var (
	knocks = metrics.NewCounter("muster_test_knocks_total", "Knocks.", "door")
	waits  = metrics.NewHistogram("muster_test_wait_seconds", "Waits.", []float64{1, 2}).WithLabelValues()
)

func TestDeclaredMetricsAreListedAndServed(t *testing.T) {
	knocks.WithLabelValues("front").Inc()
	waits.Observe(1.5)
	values := metricstest.Values(t)
	if values["muster_test_knocks_total{door=front}"] != 1 || values["muster_test_wait_seconds_count"] != 1 ||
		values["muster_test_wait_seconds_sum"] != 1.5 {
		t.Errorf("values = %v", values)
	}
	var names []string
	for _, m := range metrics.Declared() {
		names = append(names, string(m.Kind)+" "+m.Name)
	}
	if want := []string{"counter muster_test_knocks_total",
		"histogram muster_test_wait_seconds"}; !slices.Equal(names, want) {
		t.Errorf("declared metrics = %q, want %q", names, want)
	}
}

func TestNoNameIsDeclaredTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the second declaration was accepted")
		}
	}()
	metrics.NewGaugeDesc("muster_test_knocks_total", "Others.")
}
