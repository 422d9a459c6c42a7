package admission

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	// passSeconds is how long the engine thinks at a time: news wait as long.
	passSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "muster_engine_pass_seconds",
		Help:    "Time of one pass of the engine over what has changed.",
		Buckets: prometheus.ExponentialBuckets(0.00005, 4, 8),
	})
	// decisionsTotal counts what the engine decided, written or not.
	decisionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_engine_decisions_total",
		Help: "Decisions of the engine: admit or evict.",
	}, []string{"decision"})
)

func init() {
	metrics.Registry.MustRegister(passSeconds, decisionsTotal)
}
