package metrics

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Kind is the Prometheus type of a metric.
type Kind string

// The types that the operator uses.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric is a declared metric.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string
}

// declared are all metrics by name. Packages are initialized one after another, but tests may declare metrics
// concurrently.
var (
	mu       sync.Mutex
	declared = map[string]Metric{}
)

// Declared returns all declared metrics, sorted by name.
func Declared() []Metric {
	mu.Lock()
	defer mu.Unlock()
	var out []Metric
	for _, m := range declared {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// NewCounter declares and registers a counter. If it has no labels, WithLabelValues() returns it.
func NewCounter(name, help string, labels ...string) *prometheus.CounterVec {
	declare(Counter, name, help, labels)
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	metrics.Registry.MustRegister(vec)
	return vec
}

// NewHistogram declares and registers a histogram. nil buckets are Prometheus' defaults. If it has no labels,
// WithLabelValues() returns it.
func NewHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	declare(Histogram, name, help, labels)
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	metrics.Registry.MustRegister(vec)
	return vec
}

// NewGaugeDesc declares a gauge of a collector, which is registered by Serve and computes its values when it is
// scraped.
func NewGaugeDesc(name, help string, labels ...string) *prometheus.Desc {
	declare(Gauge, name, help, labels)
	return prometheus.NewDesc(name, help, labels, nil)
}

// Serve registers a collector.
func Serve(c prometheus.Collector) { metrics.Registry.MustRegister(c) }

func declare(kind Kind, name, help string, labels []string) {
	mu.Lock()
	defer mu.Unlock()
	if _, twice := declared[name]; twice {
		panic("metric " + name + " is declared twice")
	}
	declared[name] = Metric{Name: name, Kind: kind, Labels: slices.Clone(labels), Help: help}
}
