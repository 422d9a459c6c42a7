package jobs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// reconciler brings jobs of one API in step with their Workload and their children.
type reconciler[T client.Object] struct {
	api API[T]
	// served are the kinds of all job APIs, this one among them.
	served   []schema.GroupKind
	client   client.Client
	executor *Executor
	clock    clock.PassiveClock
}

// Reconcile reads what there is, asks the API's functions what follows, and has it
// carried out.
func (r *reconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	job := r.api.New()
	if err := r.client.Get(ctx, req.NamespacedName, job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !job.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, nil // its children and its Workload go with it
	}
	plan, err := r.plan(ctx, job)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.executor.Run(ctx, job, plan); err != nil {
		if overtaken(err) {
			// The watch brings what somebody else wrote, and with it the next try.
			ctrl.LoggerFrom(ctx).V(1).Info("planning again after a conflict", "cause", err.Error())
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, err
	}
	if plan.Due.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(plan.Due.Sub(r.clock.Now()), 1)}, nil
}

// plan is everything that the job needs done: what its API plans, and what keeps
// its Workload in step.
func (r *reconciler[T]) plan(ctx context.Context, job T) (Plan, error) {
	facts, err := r.facts(ctx, job.GetNamespace())
	if err != nil {
		return Plan{}, err
	}
	described := r.api.Describe(job, facts)
	if described.Foreign {
		return Plan{}, nil
	}
	children, err := r.children(ctx, job)
	if err != nil {
		return Plan{}, err
	}
	workload, err := r.workload(ctx, job)
	if err != nil {
		return Plan{}, err
	}
	queue := chooseQueue(job, described, r.api.Queue, facts.Queues, len(children) > 0)
	switch {
	case ownedByServed(job, r.served):
		queue = QueueChoice{} // its owner queues for it
	case workload != nil && queue.Name == "":
		queue.Name = string(workload.Spec.QueueName) // it stays where it is once it queued
	case len(described.PodSets) == 0:
		queue.Name = "" // a job without pods asks for nothing
	}
	seen := Seen[T]{Job: job, Facts: facts, Children: children, Now: r.clock.Now()}
	if queue.Name == "" {
		seen.Admission = Admission{Grant: Unqueued}
		return r.api.Plan(seen), nil
	}
	seen.Admission = grantOf(workload, facts.Flavors)
	plan := r.api.Plan(seen)
	if missing := seen.Admission.MissingFlavor; missing != "" && plan.Progress.Outcome == nil {
		plan.Events = append(plan.Events, Warning(kueue.ClusterQueueActiveReasonFlavorNotFound,
			fmt.Sprintf("No pods can be started: the ResourceFlavor %s, where the job has its quota, does not exist. Create it again, or delete the job", missing)))
	}
	wanted := workloadFor(job, r.api.Kind, described, queue.Name, priorityOf(job, described, facts.Priorities))
	plan.Writes = append(plan.Writes, workloadWrites(workload, wanted, plan.Progress, seen.Now)...)
	if queue.Make != nil && seen.Admission.Grant == Waiting && plan.Progress.Outcome == nil {
		plan.Writes = append(plan.Writes, Create(queue.Make))
	}
	return plan, nil
}

// workload is the job's Workload, or nil.
func (r *reconciler[T]) workload(ctx context.Context, job T) (*kueue.Workload, error) {
	var w kueue.Workload
	key := client.ObjectKey{Namespace: job.GetNamespace(), Name: WorkloadName(r.api.Kind, job.GetName(), job.GetUID())}
	switch err := r.client.Get(ctx, key, &w); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Workload %s: %w", key, err)
	case !metav1.IsControlledBy(&w, job):
		return nil, fmt.Errorf("reading Workload %s: %w", key, &nameTakenError{name: key.Name})
	}
	return &w, nil
}

// children are the objects that the job controls, by kind in the order of Owns.
func (r *reconciler[T]) children(ctx context.Context, job T) ([]client.Object, error) {
	var out []client.Object
	for _, kind := range r.api.Owns {
		list, err := newListOf(kind, r.client)
		if err != nil {
			return nil, err
		}
		if err := r.client.List(ctx, list, client.InNamespace(job.GetNamespace()),
			client.MatchingFields{controllerIndex: string(job.GetUID())}); err != nil {
			return nil, fmt.Errorf("listing children of %s/%s: %w", job.GetNamespace(), job.GetName(), err)
		}
		err = meta.EachListItem(list, func(item runtimeObject) error {
			out = append(out, item.(client.Object))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing children of %s/%s: %w", job.GetNamespace(), job.GetName(), err)
		}
	}
	return out, nil
}

func newListOf(kind client.Object, c client.Client) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(kind, c.Scheme())
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	list, err := c.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	return list.(client.ObjectList), nil
}

// facts reads what Describe and Plan may know. The lists share the cache's objects:
// nobody changes a fact.
func (r *reconciler[T]) facts(ctx context.Context, namespace string) (Facts, error) {
	var (
		local    kueue.LocalQueueList
		cluster  kueue.ClusterQueueList
		flavors  kueue.ResourceFlavorList
		classes  kueue.WorkloadPriorityClassList
		podClass schedulingv1.PriorityClassList
		ns       corev1.Namespace
	)
	shared := client.UnsafeDisableDeepCopy
	for _, read := range []func() error{
		func() error { return r.client.Get(ctx, client.ObjectKey{Name: namespace}, &ns) },
		func() error { return r.client.List(ctx, &local, client.InNamespace(namespace), shared) },
		func() error { return r.client.List(ctx, &cluster, shared) },
		func() error { return r.client.List(ctx, &flavors, shared) },
		func() error { return r.client.List(ctx, &classes, shared) },
		func() error { return r.client.List(ctx, &podClass, shared) },
	} {
		if err := read(); err != nil {
			return Facts{}, fmt.Errorf("reading the facts that jobs depend on: %w", err)
		}
	}
	return Facts{
		Queues:     QueueFacts{Local: byName(local.Items), Cluster: byName(cluster.Items), Namespace: &ns},
		Priorities: PriorityFacts{Workload: byName(classes.Items), Pod: byName(podClass.Items)},
		Flavors:    byName(flavors.Items),
	}, nil
}

// byName maps the items of a list by their names.
func byName[O any, P interface {
	*O
	client.Object
}](items []O) map[string]*O {
	out := make(map[string]*O, len(items))
	for i := range items {
		out[P(&items[i]).GetName()] = &items[i]
	}
	return out
}
