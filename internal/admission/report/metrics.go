package report

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/metrics"
)

var (
	// PassSeconds also bounds by how much events are delayed.
	PassSeconds = metrics.NewHistogram("muster_engine_pass_seconds",
		"Time of one pass of the engine over what has changed.",
		prometheus.ExponentialBuckets(0.00005, 4, 8)).WithLabelValues()
	// DecisionsTotal counts the decisions of the engine, written or not.
	DecisionsTotal = metrics.NewCounter("muster_engine_decisions_total",
		"Decisions of the engine: admit, replace, resize, evict, withdraw an admission that is not written yet, or try one that was refused before others are evicted for it.", "decision")
	// MissedWakesTotal counts what the engine's own check of waiting workloads found.
	MissedWakesTotal = metrics.NewCounter("muster_engine_missed_wakes_total",
		"Workloads that waited although nothing was in their way, found by the engine's check of one class of waiting workloads a second while it rests. Each is a bug of Muster's.").WithLabelValues()
	// BindSeconds is the time that placement adds to that of kube-scheduler and of the job itself.
	BindSeconds = metrics.NewHistogram("muster_placement_bind_seconds",
		"Time from the admission of a workload that was given places until the last of its pods is bound to a node.",
		prometheus.ExponentialBuckets(0.05, 2, 14)).WithLabelValues()
	// LostRacesTotal counts pods whose capacity was taken between admission and binding.
	LostRacesTotal = metrics.NewCounter("muster_placement_lost_races_total",
		"Pods that kube-scheduler could not bind to the nodes of their places.").WithLabelValues()
	// RepairsTotal counts workloads that lost places while they held them.
	RepairsTotal = metrics.NewCounter("muster_placement_repairs_total",
		"Admitted workloads that lost places to failed, cordoned or full nodes: replaced (other places in the same domain), shrunk (they go on with fewer pods) or evicted.",
		"outcome")
)
