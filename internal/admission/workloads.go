package admission

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/admission/indexes"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// concurrentSteps is how many Workloads are reconciled concurrently.
	concurrentSteps = 8
	// longestWait bounds a wait for a deadline, and so the delay until a clock that jumps is noticed.
	longestWait = time.Hour
)

// workloads reconciles the lifecycle of each Workload, as package lifecycle decides. Most updates of a Workload need
// no step: the event handler finds that out on the cache's object and does not enqueue a request.
type workloads struct {
	client client.Client
	// cache reads from the informers. Its objects are shared and must not be modified.
	cache client.Reader
	// live reads from the API server: the cache keeps little of the status of pods.
	live   client.Reader
	policy lifecycle.Policy
	clock  clock.PassiveClock
	events *decisions.JobEvents
}

// addWorkloads adds the lifecycle controller to the manager.
func addWorkloads(mgr ctrl.Manager, policy lifecycle.Policy, events *decisions.JobEvents) error {
	if err := indexes.AddIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	w := &workloads{client: mgr.GetClient(), cache: mgr.GetCache(), live: mgr.GetAPIReader(), policy: policy,
		clock: clock.RealClock{}, events: events}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("workload-lifecycle").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrentSteps,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond,
				decisions.LongestRetry),
		}).
		Watches(&kueue.Workload{}, w.enqueueNeedingStep()).
		Watches(&kueue.LocalQueue{}, handler.EnqueueRequestsFromMapFunc(w.ofLocalQueue),
			builder.WithPredicates(indexes.ConcernsWorkloads)).
		Watches(&kueue.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(w.ofClusterQueue),
			builder.WithPredicates(indexes.ConcernsWorkloads)).
		Complete(w)
	if err != nil {
		return fmt.Errorf("adding the lifecycle of Workloads: %w", err)
	}
	return nil
}

// lifecyclePolicy returns the part of the configuration, which must be complete, that governs the lifecycle of
// Workloads.
func lifecyclePolicy(cfg *config.Configuration) lifecycle.Policy {
	p := cfg.WaitForPodsReady
	out := lifecycle.Policy{BackoffMax: time.Duration(*p.RequeuingStrategy.BackoffMaxSeconds) * time.Second}
	if *p.Enable {
		out.PodsReady = &lifecycle.PodsReady{
			Timeout:         p.Timeout.Duration,
			RecoveryTimeout: p.RecoveryTimeout.Duration,
			BackoffBase:     time.Duration(*p.RequeuingStrategy.BackoffBaseSeconds) * time.Second,
			BackoffLimit:    p.RequeuingStrategy.BackoffLimitCount,
		}
	}
	if kept := cfg.ObjectRetentionPolicies.Workloads; kept != nil {
		out.AfterFinished, out.AfterDeactivated = duration(kept.AfterFinished), duration(kept.AfterDeactivatedByMuster)
	}
	return out
}

func duration(d *metav1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return &d.Duration
}

// Reconcile takes the step that the Workload needs.
func (wo *workloads) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w kueue.Workload
	if err := wo.cache.Get(ctx, req.NamespacedName, &w, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	step, err := wo.nextWithProblem(ctx, &w)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch err := wo.carryOut(ctx, &w, step); {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		// The watch delivers the change of the other writer, and triggers the next reconcile.
		ctrl.LoggerFrom(ctx).V(1).Info("reconciling again after a conflict", "cause", err.Error())
		return ctrl.Result{}, nil
	case step.Delete == lifecycle.TheJob && (apierrors.IsForbidden(err) || meta.IsNoMatchError(err)):
		// A job of another controller, which the operator has no right to delete.
		ctrl.LoggerFrom(ctx).Info("the job of a deactivated Workload is left", "cause", err.Error())
		return ctrl.Result{RequeueAfter: longestWait}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	if step.Due.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: wo.until(step.Due)}, nil
}

// until returns how long to wait for a due time.
func (wo *workloads) until(due time.Time) time.Duration {
	return min(max(due.Sub(wo.clock.Now()), time.Millisecond), longestWait)
}

// next returns the step that the Workload needs according to the cache.
func (wo *workloads) next(ctx context.Context, w *kueue.Workload) (lifecycle.Step, error) {
	facts, err := wo.facts(ctx, w)
	if err != nil {
		return lifecycle.Step{}, err
	}
	return lifecycle.Next(w, facts, wo.policy, wo.clock.Now()), nil
}

// nextWithProblem returns the step that the Workload needs according to the cache. If the step gives up pods that were
// not ready in time, its message says why they were not: this is found out now, while the pods exist.
func (wo *workloads) nextWithProblem(ctx context.Context, w *kueue.Workload) (lifecycle.Step, error) {
	facts, err := wo.facts(ctx, w)
	if err != nil {
		return lifecycle.Step{}, err
	}
	step := lifecycle.Next(w, facts, wo.policy, wo.clock.Now())
	if !lifecycle.GivesUpPods(w, step) {
		return step, nil
	}
	if facts.PodsProblem = wo.podsProblem(ctx, w); facts.PodsProblem == "" {
		return step, nil
	}
	return lifecycle.Next(w, facts, wo.policy, wo.clock.Now()), nil
}

// facts reads the queues of a Workload if its step may depend on them.
func (wo *workloads) facts(ctx context.Context, w *kueue.Workload) (lifecycle.Facts, error) {
	heldBack := meta.IsStatusConditionFalse(w.Status.Conditions, kueue.WorkloadRequeued)
	if workload.IsFinished(w) || !workload.HoldsQuota(w) && !heldBack {
		return lifecycle.Facts{}, nil
	}
	var out lifecycle.Facts
	var local kueue.LocalQueue
	switch err := wo.cache.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}, &local,
		client.UnsafeDisableDeepCopy); {
	case err == nil:
		out.LocalQueue = &local
	case !apierrors.IsNotFound(err):
		return out, fmt.Errorf("reading the LocalQueue of a Workload: %w", err)
	}
	name := string(local.Spec.ClusterQueue)
	if workload.HoldsQuota(w) {
		name = string(w.Status.Admission.ClusterQueue)
	}
	var cluster kueue.ClusterQueue
	switch err := wo.cache.Get(ctx, client.ObjectKey{Name: name}, &cluster, client.UnsafeDisableDeepCopy); {
	case err == nil:
		out.ClusterQueue = &cluster
	case !apierrors.IsNotFound(err):
		return out, fmt.Errorf("reading the ClusterQueue of a Workload: %w", err)
	}
	return out, nil
}

// carryOut carries out the step. Each write applies only to the version of the Workload that was seen.
func (wo *workloads) carryOut(ctx context.Context, seen *kueue.Workload, step lifecycle.Step) error {
	switch {
	case step.Status != nil:
		written, _, err := decisions.WriteStatusThatFits(ctx, wo.client, seen, step.Status)
		if err == nil {
			wo.events.StatusChanged(seen, written)
			decisions.LogChange(ctx, seen, written)
		}
		return err
	case step.Object != nil:
		return wo.client.Patch(ctx, step.Object, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}),
			client.DisableReadYourWritesConsistency)
	case step.Delete == lifecycle.TheWorkload:
		return wo.client.Delete(ctx, seen.DeepCopy(),
			client.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion})
	case step.Delete == lifecycle.TheJob:
		owner := metav1.GetControllerOf(seen)
		job := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: owner.APIVersion, Kind: owner.Kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: owner.Name},
		}
		return wo.client.Delete(ctx, job, client.Preconditions{UID: &owner.UID},
			// which would keep the name of every deleted job
			client.PropagationPolicy(metav1.DeletePropagationBackground), client.DisableReadYourWritesConsistency)
	}
	return nil
}

// enqueueNeedingStep enqueues the Workloads that need a step, now or when it is due.
func (wo *workloads) enqueueNeedingStep() handler.EventHandler {
	enqueue := func(ctx context.Context, object client.Object,
		queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		step, err := wo.next(ctx, object.(*kueue.Workload))
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
		switch {
		case err != nil || step.Writes():
			queue.Add(request) // on an error too: Reconcile runs into it again and reports it
		case !step.Due.IsZero():
			queue.AddAfter(request, wo.until(step.Due))
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.ObjectNew, queue)
		},
	}
}

// ofLocalQueue returns the Workloads that need a step after a change of their LocalQueue.
func (wo *workloads) ofLocalQueue(ctx context.Context, q client.Object) []reconcile.Request {
	return wo.needingStep(ctx, client.InNamespace(q.GetNamespace()),
		client.MatchingFields{indexes.QueueIndex: q.GetName()})
}

// ofClusterQueue returns the Workloads that need a step after a change of a ClusterQueue: Workloads that hold its
// quota, and Workloads in LocalQueues that point to it.
func (wo *workloads) ofClusterQueue(ctx context.Context, q client.Object) []reconcile.Request {
	out := wo.needingStep(ctx, client.MatchingFields{indexes.ReservedIndex: q.GetName()})
	var queues kueue.LocalQueueList
	if err := wo.cache.List(ctx, &queues, client.MatchingFields{indexes.ClusterQueueIndex: q.GetName()},
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the LocalQueues of a ClusterQueue that has changed",
			"clusterQueue", q.GetName())
	}
	for i := range queues.Items {
		out = append(out, wo.ofLocalQueue(ctx, &queues.Items[i])...)
	}
	return out
}

// needingStep returns the listed Workloads that need a step, now or later: a time limit that has changed may be reached
// sooner than the next step was due, and a reconcile schedules it anew.
func (wo *workloads) needingStep(ctx context.Context, which ...client.ListOption) []reconcile.Request {
	var list kueue.WorkloadList
	if err := wo.cache.List(ctx, &list, append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the Workloads of a queue that has changed")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		w := &list.Items[i]
		if step, err := wo.next(ctx, w); err != nil || step.Writes() || !step.Due.IsZero() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		}
	}
	return out
}
