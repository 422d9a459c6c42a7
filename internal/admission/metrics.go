package admission

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/metrics"
)

var (
	// passSeconds also bounds by how much events are delayed.
	passSeconds = metrics.NewHistogram("muster_engine_pass_seconds", "Time of one pass of the engine over what has changed.",
		prometheus.ExponentialBuckets(0.00005, 4, 8)).WithLabelValues()
	// decisionsTotal counts the decisions of the engine, written or not.
	decisionsTotal = metrics.NewCounter("muster_engine_decisions_total", "Decisions of the engine: admit, replace, resize, evict, withdraw an admission that is not written yet, or try one that was refused before others are evicted for it.", "decision")
	// bindSeconds is the time that placement adds to that of kube-scheduler and of the job itself.
	bindSeconds = metrics.NewHistogram("muster_placement_bind_seconds",
		"Time from the admission of a workload that was given places until the last of its pods is bound to a node.",
		prometheus.ExponentialBuckets(0.05, 2, 14)).WithLabelValues()
	// repairsTotal counts workloads that lost places while they held them.
	repairsTotal = metrics.NewCounter("muster_placement_repairs_total",
		"Admitted workloads that lost places to failed, cordoned or full nodes: replaced (other places in the same domain), shrunk (they go on with fewer pods) or evicted.",
		"outcome")
	// droppedEvents counts events that the write budget did not permit.
	droppedEvents = metrics.NewCounter("muster_events_dropped_total",
		"Events about jobs that were not written because there were too many, or the API server was overloaded.").WithLabelValues()
	// lostRacesTotal counts pods whose capacity was taken between admission and binding.
	lostRacesTotal = metrics.NewCounter("muster_placement_lost_races_total",
		"Pods that kube-scheduler could not bind to the nodes of their places.").WithLabelValues()
)
