package jobs

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// reconciler brings jobs of one API in step with their Workload and their children.
type reconciler[T client.Object] struct {
	api API[T]
	// owns are the kinds that Plan may create, and later those that the cluster may not serve.
	owns        []client.Object
	later       []*late
	nativeGangs bool
	agent       func() podspec.Agent // nil for none
	// served are the kinds of job APIs of which a job queues for what belongs to it.
	served   []schema.GroupKind
	client   client.Client
	executor *Executor
	// live reads from the API server itself: pods, as nobody keeps all of a cluster, and what a cache that lags must not be believed.
	live client.Reader
	// backoff is of jobs whose pods are refused.
	backoff   Backoff
	readiness Readiness
	// busy reports whether the API server has more to do than it can, nil for never.
	busy  func() bool
	clock clock.PassiveClock
	// counts and reclaims are what can wait to be told.
	counts, reclaims counts
	lives            lives
	told             told
	lacks            lacks
	namers           namers
}

// Reconcile brings the job of the request in step, or lets go what was kept for one that is gone.
func (r *reconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	job := r.api.New()
	err := r.client.Get(ctx, req.NamespacedName, job)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	lives := err == nil && job.GetDeletionTimestamp().IsZero()
	wait, err := r.letWorkloadsGo(ctx, req.NamespacedName, job, lives)
	if !lives {
		r.forget(req.NamespacedName)
	}
	if err != nil || !lives { // its children and its Workload go with it
		return ctrl.Result{RequeueAfter: wait}, err
	}
	again, err := r.step(ctx, job)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: sooner(wait, again)}, nil
}

// step reads what there is of a job that lives, asks the API's functions what follows, and has it carried out. It returns after how long
// the job is looked at again whatever happens, 0 for never.
func (r *reconciler[T]) step(ctx context.Context, job T) (again time.Duration, err error) {
	r.namers.note(job)
	if !r.knowsLateKinds() {
		return 0, nil
	}
	plan, err := r.plan(ctx, job)
	if err != nil {
		return 0, err
	}
	switch there, err := r.isThere(ctx, job, plan.IfGone); {
	case err != nil:
		return 0, err
	case there:
		return unseenPause, nil
	}
	plan = r.keepBack(job, plan)
	if !plan.Due.IsZero() {
		again = max(plan.Due.Sub(r.clock.Now()), 1)
	}
	standing, others := plan.standing()
	plan.Events = others
	err = r.executor.Run(ctx, job, plan)
	// What was planned of what somebody else has changed since may hold no longer: the next plan says.
	holds := err == nil || plan.StatusOnError == nil && !overtaken(err)
	if holds && !r.told.tell(job, standing, r.executor.tellWhatHolds) {
		again = sooner(again, untoldPause())
	}
	switch {
	case err == nil:
		r.count(job, plan)
	case overtaken(err):
		// The watch brings what somebody else wrote, and with it the next try.
		ctrl.LoggerFrom(ctx).V(1).Info("planning again after a conflict", "cause", err.Error())
	case !comesToNothing(err):
		return 0, err
	}
	return again, nil
}

// keepBack is the plan without what can wait to be written, and due when that cannot wait any longer.
func (r *reconciler[T]) keepBack(job T, plan Plan) Plan {
	now := r.clock.Now()
	plan = r.reclaims.keepBackReclaims(job, plan, now)
	plan = plan.withMemoryFirst()
	plan = r.counts.keepBack(job, plan, plan.patience(r.api.CountsEvery, r.busy != nil && r.busy()), now)
	return r.readiness.keepBack(plan, now)
}

// count counts what is new of the job, once its plan is carried out.
func (r *reconciler[T]) count(job T, plan Plan) {
	if r.countsLives() {
		r.lives.look(job, plan.Progress, r.clock.Now()).count(r.api.Kind.Kind, job.GetNamespace())
	}
	if plan.StartedUnheld {
		startedUnheld.WithLabelValues(r.api.Kind.Kind).Inc()
	}
}

// forget drops what is remembered of a job that is gone, or on its way.
func (r *reconciler[T]) forget(job types.NamespacedName) {
	r.counts.forget(job)
	r.reclaims.forget(job)
	r.told.forget(job)
	r.lacks.forget(job)
	r.namers.forget(job)
	if r.lives.forget(job) && r.countsLives() {
		moment{deleted: true}.count(r.api.Kind.Kind, job.Namespace)
	}
}

// sooner is the shorter of two waits, of which 0 is for ever.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// countsLives reports whether the API's jobs are counted here: those of another controller are counted there.
func (r *reconciler[T]) countsLives() bool { return !r.api.External }

// plan is everything that the job needs done: what its API plans, and what keeps
// its Workload in step.
func (r *reconciler[T]) plan(ctx context.Context, job T) (Plan, error) {
	facts, err := r.facts(ctx, job)
	if err != nil {
		return Plan{}, err
	}
	described := r.api.Describe(job, facts)
	if !r.api.Resizes {
		keepSizes(described.PodSets)
	}
	if described.Foreign {
		return Plan{}, nil
	}
	seen, err := r.look(ctx, job, facts)
	if err != nil {
		return Plan{}, err
	}
	found, err := r.workload(ctx, job)
	if err != nil {
		return Plan{}, err
	}
	var own *kueue.Workload
	if found != nil && isOf(found, job, r.api.Kind) {
		own = found
	}
	seen.Facts.Priorities = facts.Priorities.remembering(own)
	queue, queued := r.queueOf(job, described, facts.Queues, len(seen.Children), found)
	held, err := r.heldByChild(ctx, described, seen.Children, found)
	switch {
	case err != nil:
		return Plan{}, err
	case held:
		seen.Admission = Admission{Grant: Unqueued}
		plan := r.api.Plan(seen)
		plan.DueBy(seen.Now.Add(longestPoll)) // nothing tells when it is over
		return plan, nil
	case queued:
		return r.planQueued(ctx, seen, described, queue, found, own)
	case r.api.External:
		return Plan{}, nil
	}
	seen.Admission = Admission{Grant: Unqueued}
	return r.planAlone(seen), nil
}

// planAlone is what the API plans, as if there were no Workload to keep in step.
func (r *reconciler[T]) planAlone(seen Seen[T]) Plan {
	plan := r.api.Plan(seen)
	if !r.nativeGangs {
		plan.Writes = append(plan.Writes, loosen(seen.Children)...)
	}
	return plan
}

// look is what there is of the job, but for its Workload.
func (r *reconciler[T]) look(ctx context.Context, job T, facts Facts) (seen Seen[T], err error) {
	seen = Seen[T]{Job: job, Facts: facts}
	if seen.Children, err = r.children(ctx, job); err != nil {
		return seen, err
	}
	if seen.Beside, err = r.beside(ctx, job); err != nil {
		return seen, err
	}
	seen.Pods, err = r.podsOf(ctx, job)
	seen.Now = r.clock.Now()
	return seen, err
}

// planQueued is plan of a job that goes to a queue. The Workload that was found is its own, or the one that it names; nil stands for none.
func (r *reconciler[T]) planQueued(ctx context.Context, seen Seen[T], described Description, queue queueChoice, found, own *kueue.Workload) (Plan, error) {
	job, facts := seen.Job, seen.Facts
	nodes, err := r.nodes(ctx, own)
	if err != nil {
		return Plan{}, err
	}
	granting := own
	if prebuiltName(job) != "" {
		granting = inFull(own, described.PodSets)
	}
	seen.Admission = grantOf(granting, facts.Flavors, nodes)
	seen.Admission.Until, seen.Admission.Bound = until(own, facts.Queues)
	seen.Admission.Deactivated = own != nil && !workload.IsActive(own)
	if seen.Refusals, err = r.refusals(ctx, job.GetNamespace()); err != nil {
		return Plan{}, err
	}
	// What has come to be wrong since it got its Workload keeps it from nothing.
	if mistakes := mistakesOf(job, described, facts.Priorities, false); own == nil && len(mistakes) > 0 {
		seen.Mistake = mistakes[0].Message
	}
	seen.Lacked = r.lacks.before(job)
	plan := r.planAlone(seen)
	r.lacks.note(job, seen.lackedAfter(plan.Progress))
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
	writes, events := r.queueWrites(job, described, queue.Name, facts, found, plan.Progress, seen.Now)
	plan.Writes, plan.Events = append(plan.Writes, writes...), append(plan.Events, events...)
	if queue.Make != nil && seen.Admission.Grant == Waiting && !described.Paused && plan.Progress.Outcome == nil {
		plan.Writes = append(plan.Writes, Create(queue.Make))
	}
	return plan, nil
}

// queueOf is the queue that the job goes to, and whether it goes to one at all: not if
// another job queues for it, nor without pods. One that names a Workload which is not
// there yet waits, though its queue is not known.
func (r *reconciler[T]) queueOf(job T, described Description, facts QueueFacts, children int, found *kueue.Workload) (queueChoice, bool) {
	if ownedByServed(job, r.served) {
		return queueChoice{}, false
	}
	queue := chooseQueue(job, described, r.api.Queue, facts, runsAlready(job, described, facts, children))
	switch {
	case queue.Name == "" && found != nil:
		return queueChoice{Name: string(found.Spec.QueueName)}, true // it stays where it is once it queued
	case len(described.PodSets) == 0 && described.Paused && found != nil:
		return queueChoice{Name: string(found.Spec.QueueName)}, true // which it leaves
	case len(described.PodSets) == 0:
		return queueChoice{}, false
	}
	return queue, queue.Name != "" || prebuiltName(job) != ""
}

// cannotStart tells why an admitted job gets no pods: also of one whose Workload has ended for that, which is told for as long as it is so.
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
			fmt.Sprintf("No pods can be started: the ResourceFlavor %s, where the job has its quota, does not exist. Create it again, or delete the job", a.MissingFlavor))}
	case why != "":
		return []Event{Obstacle(kueue.WorkloadFinishedReasonFailedToStart, "No pods can be started: "+why)}
	}
	return nil
}

// cannotQueue tells why a job waits whose queue there is not. It is told once its Workload says that it waits: the queue may have been
// made just before the job.
func cannotQueue(job client.Object, queue string, a Admission, queues QueueFacts) []Event {
	if a.Grant != Waiting || a.Why == "" || queue == "" {
		return nil
	}
	if why := queues.NotFound(queue, job.GetNamespace()); why != "" {
		event := Obstacle(queueNotFound, "The job waits: "+why)
		event.About = queue // which queues there are instead changes
		return []Event{event}
	}
	return nil
}

// asks is what the job asks of its Workload, in the queue.
func (r *reconciler[T]) asks(job T, queue string, facts Facts) request {
	asked, _ := requestOf(job, facts.Priorities)
	if r.api.Pauses {
		return asked
	}
	return asked.within(queue, facts.Queues)
}

// queueWrites keep the job's Workload in step: its own, or the one that it names.
func (r *reconciler[T]) queueWrites(job T, described Description, queue string, facts Facts, found *kueue.Workload, progress Progress, now time.Time) ([]Write, []Event) {
	asked := r.asks(job, queue, facts)
	prebuilt := r.prebuiltOf(job) != ""
	givesBack := progress.QueuesAnew || described.Paused && !prebuilt && progress.Outcome == nil
	owns := found != nil && isOf(found, job, r.api.Kind)
	var events []Event
	if progress.Outcome == nil {
		events = mistakesOf(job, described, facts.Priorities, owns && !givesBack && found.DeletionTimestamp.IsZero())
	}
	switch {
	case progress.QueuesAnew && prebuilt:
		return outOfSync(found, now)
	case givesBack:
		return pausedWrites(found, progress), events
	case !owns && len(events) > 0:
		return nil, events // nor does it take the one that it names
	}
	if prebuilt && progress.Outcome == nil {
		writes, told := takePrebuilt(job, r.api.Kind, found, described, queue, now)
		events = append(events, told...)
		if len(writes) > 0 || len(told) > 0 {
			return writes, events
		}
	}
	wanted := workloadFor(job, r.api.Kind, described, queue, priorityOf(job, described, facts.Priorities), asked)
	if r.api.QueuesAnew && progress.Outcome == nil {
		noteAsked(wanted, described.PodSets)
	}
	switch {
	case found == nil && prebuilt:
		return nil, events
	case prebuilt, len(events) > 0:
		wanted = found // whoever made it says what it asks; a mistake changes nothing
	case progress.Outcome == nil && progress.Refused == "":
		events = countsLater(job, queue, found, asked)
	}
	return workloadWrites(found, wanted, progress, r.backoff, now), events
}

// workload is the job's Workload, or nil: the one that it names, which may not be its
// own yet, or else that of its name.
func (r *reconciler[T]) workload(ctx context.Context, job T) (*kueue.Workload, error) {
	var w kueue.Workload
	prebuilt := r.prebuiltOf(job)
	key := client.ObjectKey{Namespace: job.GetNamespace(), Name: prebuilt}
	if prebuilt == "" {
		key.Name = workloadName(r.api.Kind, job.GetName(), job.GetUID())
	}
	switch err := r.client.Get(ctx, key, &w); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Workload %s: %w", key, err)
	case prebuilt == "" && !isOf(&w, job, r.api.Kind):
		return nil, fmt.Errorf("reading Workload %s: %w", key, &nameTakenError{kind: "Workload", name: key.Name})
	}
	return &w, nil
}

// prebuiltOf is the Workload that the job names for itself, "" for none: where what it makes queues, it is named for that.
func (r *reconciler[T]) prebuiltOf(job T) string {
	if r.api.Delegates {
		return ""
	}
	return prebuiltName(job)
}

// isOf reports whether the Workload says that it is the job's: by its kind too, since the API asks who says that of a kind of job what
// he may say, and nobody else.
func isOf(w *kueue.Workload, job client.Object, kind schema.GroupVersionKind) bool {
	owner := metav1.GetControllerOfNoCopy(w)
	if owner == nil || owner.UID != job.GetUID() || owner.Kind != kind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == kind.Group
}
