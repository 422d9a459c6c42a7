package jobs

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// startedUnheld counts jobs that were created ready to run though a queue has a say,
// because nothing that holds such jobs was in force: they may have had pods, without
// quota, until they were stopped.
var startedUnheld = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "muster_jobs_started_unheld_total",
	Help: "Jobs with a queue that nothing held when they were created, by kind. They were stopped when they were seen.",
}, []string{"kind"})

func init() { metrics.Registry.MustRegister(startedUnheld) }
