package jobs

import "github.com/musterhq/muster/internal/metrics"

// startedUnheld counts jobs that were created ready to run though a queue has a say,
// because nothing that holds such jobs was in force: they may have had pods, without
// quota, until they were stopped.
var startedUnheld = metrics.NewCounter("muster_jobs_started_unheld_total",
	"Jobs with a queue that nothing held when they were created, by kind. They were stopped when they were seen.", "kind")
