package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// reconciler keeps the jobs of one API in sync with their Workloads and their children.
type reconciler[T client.Object] struct {
	api API[T]
	// owns lists the kinds that Plan may create, optional those of them that the cluster may not serve yet.
	owns        []client.Object
	optional    []*optionalKind
	nativeGangs bool
	// strictServiceNames is Settings.StrictServiceNames.
	strictServiceNames bool
	agent              func() podspec.Agent // nil for none
	// apis lists all job APIs: jobs of some are queued for jobs of others that they create.
	apis     []Served
	client   client.Client
	executor *Executor
	// live reads from the API server: pods, which the cache does not keep for the whole cluster, and objects for which
	// a stale cache must not be trusted.
	live client.Reader
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
	gone               goneNames
	prebuiltIndex      prebuiltIndex
	clusterQueues      clusterQueues
	retries            *retries
	nodeGains          nodeGains
}

// Reconcile brings the job of the request up to date, or drops what is remembered of a job that is gone.
func (r *reconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	job := r.api.New()
	err := r.client.Get(ctx, req.NamespacedName, job)
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
	r.prebuiltIndex.set(job)
	if !r.knowsOptionalKinds() {
		return 0, nil
	}
	plan, err := r.plan(ctx, job)
	if err != nil {
		return 0, err
	}
	switch there, err := r.exists(ctx, job, plan.IfGone); {
	case err != nil:
		return 0, err
	case there:
		return staleCacheRetry, nil
	}
	plan = r.holdBack(job, plan)
	if !plan.Due.IsZero() {
		again = max(plan.Due.Sub(r.clock.Now()), 1)
	}
	standing, others := plan.standing()
	plan.Events = others
	err = r.executor.Run(ctx, job, plan.Batch)
	if r.noteRefused(job, err) || r.noteMustGoOn(job, err) {
		again = earlierRetry(again, refusedRetry)
	}
	// If an object that the plan was based on has changed since, its events may be outdated: the next plan reports
	// them.
	holds := err == nil || plan.StatusOnError == nil && !isConflict(err)
	if holds && !r.standing.tell(job, standing, r.executor.recordStanding) {
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
	case isConflict(err):
		// The watch delivers the other writer's change and triggers the retry.
		log.V(1).Info("planning again after a conflict", "cause", err.Error())
	case isNamespaceTerminating(err):
	case isOvertaken(err):
		// So does the deletion of an object, unless its kind is gone.
		log.V(1).Info("planning again without an object that is gone", "cause", err.Error())
		again = earlierRetry(again, staleCacheRetry)
	case everyError(err, func(err error) bool { return IsRefused(err) || isOvertaken(err) }):
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
	plan = plan.withStatusBeforeReclaims()
	plan = r.statuses.holdBackStatus(job, plan, plan.statusDelay(r.api.StatusDelay, r.busy != nil && r.busy()), now)
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
	r.prebuiltIndex.forget(job)
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

// plan returns everything that has to be done for the job: the plan of its API, and what keeps its Workloads in sync.
func (r *reconciler[T]) plan(ctx context.Context, job T) (Plan, error) {
	found, others, err := r.workloads(ctx, job)
	if err != nil {
		return Plan{}, err
	}
	plan, err := r.planFollowing(ctx, job, found, others)
	plan.Writes = append(plan.Writes, r.giveBack(job, others, found, plan.Progress)...)
	if slices.ContainsFunc(others, func(w *kueue.Workload) bool { return r.isDisowned(job, w) }) {
		plan.DueBy(r.clock.Now().Add(disownedPoll)) // also if the job waits, and so has no children with events
	}
	return plan, err
}

// planFollowing is plan for a job that follows the Workload, nil for none, except for what gives the others back.
func (r *reconciler[T]) planFollowing(ctx context.Context, job T, found *kueue.Workload, others []*kueue.Workload) (Plan, error) {
	facts, err := r.facts(ctx, job)
	if err != nil {
		return Plan{}, err
	}
	var own *kueue.Workload
	if found != nil && isControlledBy(found, job, r.api.Kind) {
		own = found
		facts.Queued = own.Spec.PodSets
	}
	described := r.api.Describe(job, facts)
	if !r.api.Resizes {
		fixSizes(described.PodSets)
	}
	if !r.api.AnyPods {
		dropMinPods(described.PodSets)
	}
	if described.Foreign {
		return Plan{}, nil
	}
	seen, err := r.observe(ctx, job, facts)
	if err != nil {
		return Plan{}, err
	}
	seen.Facts.Priorities = facts.Priorities.remembering(own)
	byOwner, err := QueuedByOwner(ctx, r.client, job, r.apis...)
	if err != nil {
		return Plan{}, err
	}
	queue, queued := r.queueOf(job, described, facts.Queues, len(seen.Children), found, own, byOwner)
	held, err := r.heldByChild(ctx, described, seen.Children, found)
	switch {
	case err != nil:
		return Plan{}, err
	case held:
		seen.Admission = Admission{Grant: Unqueued}
		plan := r.api.Plan(seen)
		plan.DueBy(seen.Now.Add(longestPoll)) // no event reports when the child's quota is released
		return plan, nil
	case queued:
		return r.planQueued(ctx, seen, described, queue, found, own, others)
	case r.api.External && byOwner:
		return leftAlone(job), nil
	case r.api.External:
		return r.planOfNobody(ctx, job)
	}
	seen.Admission = Admission{Grant: Unqueued}
	return r.planAlone(ctx, seen)
}

// observe reads what exists of the job, except for its Workload.
func (r *reconciler[T]) observe(ctx context.Context, job T, facts Facts) (seen Seen[T], err error) {
	seen = Seen[T]{Job: job, Facts: facts}
	if seen.Children, err = r.children(ctx, job); err != nil {
		return seen, err
	}
	if seen.Related, err = r.related(ctx, job); err != nil {
		return seen, err
	}
	seen.Pods, err = r.podsOf(ctx, job)
	seen.RefusedObjects = r.refused.get(job)
	seen.MustGoOn = r.mustGoOn.get(job)
	seen.Now = r.clock.Now()
	return seen, err
}

// planQueued is planFollowing for a job that goes to a queue. own is the same as found if the job controls that. Both are
// nil if there is none.
func (r *reconciler[T]) planQueued(ctx context.Context, seen Seen[T], described Description, queue queueChoice, found, own *kueue.Workload, others []*kueue.Workload) (Plan, error) {
	job, facts := seen.Job, seen.Facts
	nodes, err := r.nodes(ctx, own)
	if err != nil {
		return Plan{}, err
	}
	granting := own
	if r.followsPrebuilt(job, found) {
		granting = withJobTemplates(own, described.PodSets)
	}
	seen.Admission = grantOf(granting, facts.Flavors, nodes)
	seen.Admission.Until, seen.Admission.Bound = until(own, facts.Queues)
	seen.Admission.Deactivated = own != nil && !workload.IsActive(own)
	if seen.Refusals, err = r.refusals(ctx, job, seen.Children); err != nil {
		return Plan{}, err
	}
	// A mistake made after the job got its Workload has no effect.
	if mistakes := mistakesOf(job, described, facts.Priorities, false); own == nil && len(mistakes) > 0 {
		seen.Mistake = mistakes[0].Message
	}
	seen.MissingPods = r.missingPods.get(job)
	silent, err := r.lookAtUnruled(ctx, &seen, own)
	if err != nil {
		return Plan{}, err
	}
	plan, err := r.planAlone(ctx, seen)
	if err != nil {
		return Plan{}, err
	}
	silent.add(&plan, !seen.Admission.UnreadySince.IsZero())
	r.missingPods.set(job, seen.missingPodsAfter(plan.Progress))
	seen.giveUpRefused(&plan)
	if plan.Progress.Outcome == nil {
		plan.Events = append(plan.Events, cannotStart(seen.Admission, own)...)
		plan.Events = append(plan.Events, cannotQueue(job, queue.Name, seen.Admission, facts.Queues)...)
	}
	if seen.Admission.Conflict != "" && !plan.Progress.Active && plan.Progress.Outcome == nil {
		plan.Progress.FailedToStart = seen.Admission.Conflict
	}
	if err := r.holdDelegated(ctx, &plan, own, seen.Now); err != nil {
		return Plan{}, err
	}
	// It gets and adopts no Workload while another one may hold quota for it.
	if (found == nil || !workload.HoldsQuota(found)) && r.awaited(job, others) {
		return plan, nil
	}
	writes, events := r.queueWrites(job, described, queue.Name, facts, found, plan.Progress, seen.Now)
	plan.Writes, plan.Events = append(plan.Writes, writes...), append(plan.Events, events...)
	if queue.Make != nil && seen.Admission.Grant == Waiting && !described.Paused && plan.Progress.Outcome == nil {
		plan.Writes = append(plan.Writes, Create(queue.Make))
	}
	return plan, nil
}

// cannotStart returns an event that says why an admitted job gets no pods. It is also reported, for as long as it
// holds, if the Workload was finished for that reason.
func cannotStart(a Admission, own *kueue.Workload) []Event {
	why := a.Conflict
	if own != nil {
		if c := meta.FindStatusCondition(own.Status.Conditions, kueue.WorkloadFinished); c != nil && c.Reason == kueue.WorkloadFinishedReasonFailedToStart {
			why = c.Message
		}
	}
	switch {
	case a.MissingFlavor != "":
		return []Event{Obstacle(kueue.ClusterQueueActiveReasonFlavorNotFound,
			fmt.Sprintf("No pods can be started: the ResourceFlavor %s assigned to the job does not exist. Create it again, or delete the job", a.MissingFlavor))}
	case why != "":
		return []Event{Obstacle(kueue.WorkloadFinishedReasonFailedToStart, "No pods can be started: "+why)}
	}
	return nil
}

// requestFor returns what the job, in that queue, asks of its Workload.
func (r *reconciler[T]) requestFor(job T, queue string, facts Facts) request {
	asked, _ := requestOf(job, facts.Priorities)
	if r.api.Pauses {
		return asked
	}
	return asked.within(queue, facts.Queues)
}

// queueWrites returns the writes and events that keep the job's Workload in sync, be it the job's own or one that it
// names.
func (r *reconciler[T]) queueWrites(job T, described Description, queue string, facts Facts, found *kueue.Workload, progress Progress, now time.Time) ([]Write, []Event) {
	asked := r.requestFor(job, queue, facts)
	prebuilt := r.followsPrebuilt(job, found)
	givesBack := progress.Requeue || wantsNoWorkload(described, found) && !prebuilt && progress.Outcome == nil
	owns := found != nil && isControlledBy(found, job, r.api.Kind)
	var events []Event
	if progress.Outcome == nil {
		events = mistakesOf(job, described, facts.Priorities, owns && !givesBack && found.DeletionTimestamp.IsZero())
	}
	switch {
	case progress.Requeue && found != nil && found.Name == r.prebuiltOf(job):
		return outOfSync(found, now)
	case givesBack:
		return pausedWrites(found, progress), events
	case progress.Outcome == nil && found != nil && !r.isWanted(job, found.Name) && !keepsQuota(found):
		// It is deleted rather than left evicted, or it could be admitted again before the job follows the other one.
		return r.giveBack(job, []*kueue.Workload{found}, nil, progress), events
	case !owns && len(events) > 0:
		return nil, events // nor does the job adopt the Workload that it names
	}
	if prebuilt && progress.Outcome == nil {
		writes, told := takePrebuilt(job, r.api.Kind, found, described, queue, now)
		events = append(events, told...)
		if len(writes) > 0 || len(told) > 0 {
			return writes, events
		}
	}
	ranked := priorityOf(job, described, facts.Priorities).keptBy(found, facts.Priorities)
	wanted := workloadFor(job, r.api.Kind, described, queue, ranked, asked)
	if r.api.RequeuesChanged && progress.Outcome == nil {
		recordNeeds(wanted, described.PodSets)
	}
	switch {
	case found == nil && prebuilt:
		return nil, events
	case prebuilt, len(events) > 0, len(described.PodSets) == 0:
		// A prebuilt Workload says itself what it asks for; a mistake changes nothing, and a job without pods can say
		// nothing.
		wanted = found
	case progress.Outcome == nil && progress.Refused == "":
		events = deferredChanges(job, queue, found, asked)
	}
	if progress.Outcome == nil && progress.Refused == "" && found != nil && !r.isWanted(job, found.Name) {
		events = append(events, deferredWorkload(found)...)
	}
	return workloadWrites(found, wanted, progress, r.backoff, now), events
}

// wantsNoWorkload reports whether the job gives its Workload back, nil for none: it is paused, or it asks for no pods
// and the Workload holds no quota. One that holds quota is kept until the job ends or is evicted: pods may run with it.
func wantsNoWorkload(described Description, found *kueue.Workload) bool {
	return described.Paused || len(described.PodSets) == 0 && found != nil && !workload.HoldsQuota(found) && !workload.IsFinished(found)
}
