package controller

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/controller/watching"
	"github.com/musterhq/muster/internal/metrics"
)

// Metrics of jobs, under the names that dashboards for their APIs expect. None of them has the name of a job as a
// label.
var (
	jobSetsCompleted = metrics.NewCounter("jobset_completed_total", "JobSets that succeeded.", "namespace")
	jobSetsFailed    = metrics.NewCounter("jobset_failed_total", "JobSets that failed.", "namespace")

	jobsCreated = metrics.NewCounter("training_operator_jobs_created_total",
		"Jobs that were created, by kind in lower case (trainingjob, genericjob, job for VCJobs, latticejob).", "job_namespace", "framework")
	jobsDeleted = metrics.NewCounter("training_operator_jobs_deleted_total", "Jobs that were deleted.",
		"job_namespace", "framework")
	jobsSuccessful = metrics.NewCounter("training_operator_jobs_successful_total", "Jobs that succeeded.",
		"job_namespace", "framework")
	jobsFailed = metrics.NewCounter("training_operator_jobs_failed_total", "Jobs that failed.",
		"job_namespace", "framework")
	jobsRestarted = metrics.NewCounter("training_operator_jobs_restarted_total",
		"Restarts of workers of a TrainingJob, or of a VCJob, after a failure.", "job_namespace", "framework")
)

// startedUnheld counts each start of a job that waits for quota, at its creation or later: neither webhook nor
// admission policy held it. It may have had pods without quota until it was stopped.
var startedUnheld = metrics.NewCounter("muster_jobs_started_unheld_total",
	"Starts of jobs that waited for quota, at their creation or by a user later, by kind. Each was stopped once observed.", "kind")

// jobStates records the last observed state of each job of a kind, so that each creation, end and restart is counted
// once. What happens while no leader runs is not counted. The zero value is ready for use.
type jobStates struct {
	mu sync.Mutex
	// since is when observation began: jobs created earlier are not counted as new.
	since time.Time
	seen  map[types.NamespacedName]jobState
}

// start starts the observation, if it has not been started yet.
func (j *jobStates) start(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.startLocked(now)
}

// startLocked starts the observation, if it has not been started yet. The caller holds the lock.
func (j *jobStates) startLocked(now time.Time) {
	if j.seen == nil {
		j.seen, j.since = map[types.NamespacedName]jobState{}, now.Truncate(time.Second) // creation times have seconds only
	}
}

// jobState is the last observed state of a job.
type jobState struct {
	uid        types.UID
	hasOutcome bool
	restarts   int64
}

// transition is what is to be counted for a job.
type transition struct{ created, deleted, succeeded, failed, restarted bool }

// observe records the state of the job and returns what is new.
func (j *jobStates) observe(job client.Object, p jobs.Progress, now time.Time) (m transition) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.startLocked(now)
	key := client.ObjectKeyFromObject(job)
	was, known := j.seen[key]
	if known && was.uid != job.GetUID() {
		m.deleted, known = true, false
	}
	if !known {
		m.created = !job.GetCreationTimestamp().Time.Before(j.since)
	}
	is := jobState{uid: job.GetUID(), hasOutcome: p.Outcome != nil, restarts: p.Restarts}
	if is.hasOutcome && (known && !was.hasOutcome || m.created) {
		m.succeeded, m.failed = p.Outcome.Succeeded, !p.Outcome.Succeeded
	}
	m.restarted = known && is.restarts > was.restarts
	j.seen[key] = is
	return m
}

// forget records that the job does not exist any more, and reports whether it was known.
func (j *jobStates) forget(key types.NamespacedName) (was bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, was = j.seen[key]
	delete(j.seen, key)
	return was
}

// ownMetrics is the kind that has metrics of its own.
const ownMetrics = "JobSet"

// count increments the metrics for a job of this kind and namespace.
func (t transition) count(kind, namespace string) {
	if kind == ownMetrics {
		countIf(t.succeeded, jobSetsCompleted, namespace)
		countIf(t.failed, jobSetsFailed, namespace)
		return
	}
	framework := strings.ToLower(kind)
	countIf(t.created, jobsCreated, namespace, framework)
	countIf(t.deleted, jobsDeleted, namespace, framework)
	countIf(t.succeeded, jobsSuccessful, namespace, framework)
	countIf(t.failed, jobsFailed, namespace, framework)
	countIf(t.restarted, jobsRestarted, namespace, framework)
}

func countIf(holds bool, counter *prometheus.CounterVec, labels ...string) {
	if holds {
		counter.WithLabelValues(labels...).Inc()
	}
}

// countsOutlive is how long the counts of a namespace are kept after its deletion: the deletion of its last jobs may be
// counted later than it was observed.
const countsOutlive = time.Minute

// countForgetter drops the counts of namespaces that do not exist any more: clusters in which each run of a pipeline
// has its own would have ever more of them.
type countForgetter struct{ client client.Reader }

// addTo adds its controller to the manager.
func (c countForgetter) addTo(mgr ctrl.Manager) error {
	deleted := handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue watching.Queue) {
		queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}, countsOutlive)
	}}
	return ctrl.NewControllerManagedBy(mgr).Named("job-counts").Watches(&corev1.Namespace{}, deleted).Complete(c)
}

// Reconcile implements reconcile.Reconciler.
func (c countForgetter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	err := c.client.Get(ctx, request.NamespacedName, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		forgetCounts(request.Name)
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// forgetCounts drops the counts of the namespace.
func forgetCounts(namespace string) {
	for _, counter := range []*prometheus.CounterVec{jobSetsCompleted, jobSetsFailed} {
		counter.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
	}
	for _, counter := range []*prometheus.CounterVec{jobsCreated, jobsDeleted, jobsSuccessful, jobsFailed, jobsRestarted} {
		counter.DeletePartialMatch(prometheus.Labels{"job_namespace": namespace})
	}
}
