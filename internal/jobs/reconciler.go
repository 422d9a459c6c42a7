package jobs

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs/write"
)

// reconciler keeps the jobs of one API in sync with their Workloads and their children.
type reconciler[T client.Object] struct {
	api served[T]
	// apis lists all job APIs: jobs of some are queued for jobs of others that they create.
	apis     []Served
	read     *reader[T]
	router   *router[T]
	executor *write.Executor
	// backoff applies to jobs whose pods are refused.
	backoff   Backoff
	readiness Readiness
	// busy reports whether the API server is overloaded; nil means never.
	busy  func() bool
	clock clock.PassiveClock
	// statuses and reclaims hold back writes that can wait.
	statuses, reclaims deferrals
	states             jobStates
	standing           standingEvents
	missingPods        byJob[MissingPods]
	refused            byJob[RefusedObjects]
	mustGoOn           byJob[bool]
	unanswered         byJob[unanswered]
	retries            *retries
}

// newReconciler returns the reconciler of one API. live reads from the API server: pods, which the cache does not keep for
// the whole cluster, and objects for which a stale cache must not be trusted.
func newReconciler[T client.Object](
	api served[T], c client.Client, live client.Reader, x *write.Executor, settings Settings, owns []client.Object, apis []Served, clock clock.PassiveClock,
) *reconciler[T] {
	read := &reader[T]{api: api, client: c, live: live, owns: owns,
		nativeGangs: settings.NativeGangs, strictServiceNames: settings.StrictServiceNames, agent: settings.Agent}
	for _, kind := range api.Optional {
		read.optional = append(read.optional, &optionalKind{OptionalKind: kind})
	}
	return &reconciler[T]{
		api: api, apis: apis, read: read, router: &router[T]{api: api, apis: apis, read: read, clock: clock}, executor: x, clock: clock,
		backoff: settings.Backoff, readiness: settings.Readiness, busy: settings.Busy, retries: newRetries(clock),
	}
}

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
	r.router.prebuiltIndex.set(job)
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
	standing, others := standingOf(plan.Events)
	plan.Events = others
	err = r.executor.Run(ctx, job, plan.Batch)
	if r.noteRefused(job, err) || r.noteMustGoOn(job, err) {
		again = earlierRetry(again, refusedRetry)
	}
	// If an object that the plan was based on has changed since, its events may be outdated: the next plan reports
	// them.
	holds := err == nil || plan.StatusOnError == nil && !write.IsConflict(err)
	if holds && !r.standing.tell(job, standing, r.executor.RecordStanding) {
		again = earlierRetry(again, standingEventRetry())
	}
	if err != nil {
		return r.afterError(ctx, job, plan, again, err)
	}
	r.retries.accepted(client.ObjectKeyFromObject(job))
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
func (r *reconciler[T]) afterError(ctx context.Context, job T, plan Plan, again time.Duration, err error) (time.Duration, error) {
	log := ctrl.LoggerFrom(ctx)
	switch {
	case write.IsConflict(err):
		// The watch delivers the other writer's change and triggers the retry.
		log.V(1).Info("planning again after a conflict", "cause", err.Error())
	case write.IsNamespaceTerminating(err):
	case write.IsOvertaken(err):
		// So does the deletion of an object, unless its kind is gone.
		log.V(1).Info("planning again without an object that is gone", "cause", err.Error())
		again = earlierRetry(again, staleCacheRetry)
	case write.EveryError(err, func(err error) bool { return write.IsRefused(err) || write.IsOvertaken(err) }):
		// The job, or an event, tells its user of what is refused. Whoever grants the operator its rights reads the log.
		after := r.retries.afterRefusal(job)
		log.Info("a write is refused, until somebody resolves that", "cause", err.Error(), "again after", after.String())
		again = earlierRetry(again, after)
	default:
		r.retries.retryBy(job, plan.Due)
		return 0, err
	}
	return again, nil
}

// holdBack returns the plan without the writes that can wait, and due when they cannot wait any longer.
func (r *reconciler[T]) holdBack(job T, plan Plan) Plan {
	now := r.clock.Now()
	plan = r.reclaims.holdBackReclaims(job, plan, now)
	plan = withStatusBeforeReclaims(plan)
	plan = r.statuses.holdBackStatus(job, plan, statusDelayOf(plan, r.api.StatusDelay, r.busy != nil && r.busy()), now)
	return r.readiness.holdBack(plan, now)
}

// count updates the metrics once the plan is carried out.
func (r *reconciler[T]) count(job T, plan Plan) {
	if r.countsJobs() {
		r.states.observe(job, plan.Progress, r.clock.Now()).count(r.api.Kind.Kind, job.GetNamespace())
	}
	if plan.StartedUnheld {
		startedUnheld.WithLabelValues(r.api.Kind.Kind).Inc()
	}
}

// forget drops what is remembered of a job that is gone or being deleted.
func (r *reconciler[T]) forget(job types.NamespacedName) {
	r.statuses.forget(job)
	r.reclaims.forget(job)
	r.standing.forget(job)
	r.missingPods.forget(job)
	r.refused.forget(job)
	r.mustGoOn.forget(job)
	r.unanswered.forget(job)
	r.router.prebuiltIndex.forget(job)
	r.retries.accepted(job)
	if r.states.forget(job) && r.countsJobs() {
		transition{deleted: true}.count(r.api.Kind.Kind, job.Namespace)
	}
}

// earlierRetry returns the shorter of two waits; 0 means that there is none.
func earlierRetry(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// countsJobs reports whether jobs of this API are counted here. External jobs are counted by their own controller.
func (r *reconciler[T]) countsJobs() bool { return !r.api.External }
