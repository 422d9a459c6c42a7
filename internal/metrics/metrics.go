package metrics

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Kind is the type of a metric, as Prometheus calls it.
type Kind string

// The kinds that there are.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric is one that was declared.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string
}

// declared are all metrics by name. Packages are initialized one after the other, but tests may declare side by side.
var (
	mu       sync.Mutex
	declared = map[string]Metric{}
)

// Declared are all metrics, in the order of names.
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

// NewCounter declares a counter and serves it. One without labels is had by WithLabelValues().
func NewCounter(name, help string, labels ...string) *prometheus.CounterVec {
	declare(Counter, name, help, labels)
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	metrics.Registry.MustRegister(vec)
	return vec
}

// NewHistogram declares a histogram with the buckets, nil for those of Prometheus, and serves it. One without labels is had
// by WithLabelValues().
func NewHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	declare(Histogram, name, help, labels)
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	metrics.Registry.MustRegister(vec)
	return vec
}

// NewDesc declares a metric that a collector serves, which Serve is given: values that are read where they are kept, when
// somebody asks.
func NewDesc(kind Kind, name, help string, labels ...string) *prometheus.Desc {
	declare(kind, name, help, labels)
	return prometheus.NewDesc(name, help, labels, nil)
}

// Serve has the values of a collector served.
func Serve(c prometheus.Collector) { metrics.Registry.MustRegister(c) }

func declare(kind Kind, name, help string, labels []string) {
	mu.Lock()
	defer mu.Unlock()
	if _, twice := declared[name]; twice {
		panic("metric " + name + " is declared twice")
	}
	declared[name] = Metric{Name: name, Kind: kind, Labels: slices.Clone(labels), Help: help}
}
