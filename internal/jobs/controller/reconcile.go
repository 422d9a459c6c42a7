package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/controller/waiting"
	"github.com/musterhq/muster/internal/jobs/write"
)

// Reconcile brings the job of the request up to date, or drops what is remembered of a job that is gone.
func (r *reconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	job := r.api.New()
	err := r.read.client.Get(ctx, req.NamespacedName, job)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	lives := err == nil && job.GetDeletionTimestamp().IsZero()
	if err == nil && !lives {
		if wait, err := r.endDeleted(ctx, job); err != nil || wait > 0 {
			r.forget(req.NamespacedName)
			return ctrl.Result{RequeueAfter: wait}, err
		}
	}
	wait, err := r.releaseWorkloads(ctx, req.NamespacedName, job, lives)
	if !lives {
		r.forget(req.NamespacedName)
	}
	if err == nil {
		err = r.deleteStrayTargets(ctx, req.NamespacedName, job.GetUID())
	}
	if err != nil || !lives { // children and Workload are garbage collected with the job
		return ctrl.Result{RequeueAfter: wait}, err
	}
	again, err := r.step(ctx, job)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: earlierRetry(wait, again)}, nil
}

// step observes the job, plans, and carries out the plan. It returns after how long to reconcile the job again even if
// nothing happens, 0 for never.
func (r *reconciler[T]) step(ctx context.Context, job T) (again time.Duration, err error) {
	r.router.prebuiltIndex.Set(job)
	if !r.read.knowsOptionalKinds() {
		return 0, nil
	}
	plan, err := r.decide(ctx, job)
	if err != nil {
		return 0, err
	}
	switch there, err := r.read.exists(ctx, job, plan.IfGone); {
	case err != nil:
		return 0, err
	case there:
		return staleCacheRetry, nil
	}
	plan = r.holdBack(job, plan)
	if !plan.Due.IsZero() {
		again = max(plan.Due.Sub(r.clock.Now()), 1)
	}
	standing, others := waiting.StandingOf(plan.Events)
	plan.Events = others
	err = r.executor.Run(ctx, job, plan.Batch)
	if r.noteRefused(job, err) || r.noteMustGoOn(job, err) {
		again = earlierRetry(again, refusedRetry)
	}
	// If an object that the plan was based on has changed since, its events may be outdated: the next plan reports them.
	holds := err == nil || plan.StatusOnError == nil && !write.IsConflict(err)
	if holds && !r.standing.Record(job, standing, r.executor.RecordStanding) {
		again = earlierRetry(again, waiting.StandingEventRetry())
	}
	if err != nil {
		return r.afterError(ctx, job, plan, again, err)
	}
	r.retries.Accepted(client.ObjectKeyFromObject(job))
	r.count(job, plan)
	if plan.Unfinished {
		again = 1
	}
	if !plan.DueIfDone.IsZero() {
		again = earlierRetry(again, max(plan.DueIfDone.Sub(r.clock.Now()), 1))
	}
	return again, nil
}

// afterError returns after how long to reconcile the job again whose plan was carried out with an error, not later than
// again unless that is 0. It returns the error if it is none that other writers or users cause.
func (r *reconciler[T]) afterError(ctx context.Context, job T, plan jobs.Plan, again time.Duration,
	err error) (time.Duration, error) {
	log := ctrl.LoggerFrom(ctx)
	switch {
	case write.IsConflict(err):
		// The watch delivers the change of another writer and triggers the retry.
		log.V(1).Info("planning again after a conflict", "cause", err.Error())
	case write.IsNamespaceTerminating(err):
	case write.IsOvertaken(err):
		// So does the deletion of an object, unless its kind is gone.
		log.V(1).Info("planning again without an object that is gone", "cause", err.Error())
		again = earlierRetry(again, staleCacheRetry)
	case write.EveryError(err, func(err error) bool { return write.IsRefused(err) || write.IsOvertaken(err) }):
		// The job, or an event, tells its user of what is refused. Whoever grants the operator its rights reads the log.
		after := r.retries.AfterRefusal(job)
		log.Info("a write is refused, until somebody resolves that", "cause", err.Error(), "again after", after.String())
		again = earlierRetry(again, after)
	default:
		r.retries.RetryBy(job, plan.Due)
		return 0, err
	}
	return again, nil
}

// holdBack returns the plan without the writes that can wait, and due when they cannot wait any longer.
func (r *reconciler[T]) holdBack(job T, plan jobs.Plan) jobs.Plan {
	now := r.clock.Now()
	plan = r.reclaims.HoldBackReclaims(job, plan, now)
	plan = waiting.WithStatusBeforeReclaims(plan)
	plan = r.statuses.HoldBackStatus(job, plan,
		waiting.StatusDelayOf(plan, r.api.StatusDelay, r.busy != nil && r.busy()), now)
	return r.readiness.HoldBack(plan, now)
}

// count updates the metrics once the plan is carried out.
func (r *reconciler[T]) count(job T, plan jobs.Plan) {
	if r.countsJobs() {
		r.states.observe(job, plan.Progress, r.clock.Now()).count(r.api.Kind.Kind, job.GetNamespace())
	}
	if plan.StartedUnheld {
		startedUnheld.WithLabelValues(r.api.Kind.Kind).Inc()
	}
}

// forget drops what is remembered of a job that is gone or being deleted.
func (r *reconciler[T]) forget(job types.NamespacedName) {
	r.statuses.Forget(job)
	r.reclaims.Forget(job)
	r.standing.Forget(job)
	r.missingPods.Forget(job)
	r.refused.Forget(job)
	r.mustGoOn.Forget(job)
	r.unanswered.Forget(job)
	r.router.prebuiltIndex.Forget(job)
	r.retries.Accepted(job)
	if r.states.forget(job) && r.countsJobs() {
		transition{deleted: true}.count(r.api.Kind.Kind, job.Namespace)
	}
}

// staleCacheRetry is how soon a job is reconciled again if it has a child that the cache does not show yet. The watch
// usually delivers the child earlier.
const staleCacheRetry = time.Second
