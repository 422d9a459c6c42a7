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
		Help: "Decisions of the engine: admit, replace or evict.",
	}, []string{"decision"})
	// bindSeconds is what placing costs beside kube-scheduler's and the job's own time.
	bindSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "muster_placement_bind_seconds",
		Help:    "Time from the admission of a workload that was given places until the last of its pods is bound to a node.",
		Buckets: prometheus.ExponentialBuckets(0.05, 2, 14),
	})
	// repairsTotal counts workloads that lost places while they held them.
	repairsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_placement_repairs_total",
		Help: "Admitted workloads that lost places to failed, cordoned or full nodes: replaced (other places in the same domain) or evicted.",
	}, []string{"outcome"})
	// lostRacesTotal counts pods whose room somebody else took between admission and binding.
	lostRacesTotal = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "muster_placement_lost_races_total",
		Help: "Pods that kube-scheduler found no room for on the nodes where they had a place.",
	})
)

func init() {
	metrics.Registry.MustRegister(passSeconds, decisionsTotal, bindSeconds, repairsTotal, lostRacesTotal)
}
