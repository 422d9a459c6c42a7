package controller

import (
	"cmp"
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/controller/watching"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/workload"
)

// router says which jobs of one API are reconciled for an event.
type router[T client.Object] struct {
	api           served[T]
	apis          []Served
	read          *reader[T]
	prebuiltIndex watching.PrebuiltIndex
	gone          goneNames
	clock         clock.PassiveClock
}

// watch makes the controller watch all that its jobs depend on.
func (r *router[T]) watch(mgr ctrl.Manager, watches *watching.SharedWatches, b *builder.Builder) *builder.Builder {
	api := r.api
	watch := func(kind client.Object, of handler.EventHandler, only ...predicate.Predicate) {
		b = b.WatchesRawSource(watches.Source(kind, of, only...))
	}
	r.watchQueueing(watch)
	if api.Reads.AwaitsNodes != nil {
		watch(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.jobsAwaitingNodes), notInInitialList,
			watching.GainsOfNodes)
	}
	if len(api.Reads.Kinds) > 0 {
		definition := &metav1.PartialObjectMetadata{}
		definition.SetGroupVersionKind(definitionKind)
		b = b.WatchesMetadata(definition, handler.EnqueueRequestsFromMapFunc(r.allJobs), builder.WithPredicates(predicate.And(
			notInInitialList, predicate.NewPredicateFuncs(api.asksAbout), predicate.ResourceVersionChangedPredicate{})))
	}
	for _, kind := range r.read.owns {
		// Some children are shared: the jobs that own one without controlling it are reconciled too.
		of := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), api.New())
		watch(kind, watching.BatchRequests(of, api.Watch.BatchDelay), r.notesGone(),
			predicate.Funcs{CreateFunc: api.isUnexpected, UpdateFunc: api.needsReconcile})
		if api.Watch.Targets != nil {
			watch(kind, api.targets(), predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
		}
	}
	for _, l := range r.read.optional {
		b = b.WatchesRawSource(r.optionalSource(mgr, l))
	}
	if api.Reads.Pods != nil && api.Reads.Pods.JobOf != nil {
		watch(&corev1.Pod{}, requestsOfPods(api.Reads.Pods), podsThatMatter(api.Reads.Pods))
	}
	return b
}

// watchQueueing watches what decides whether a job is queued, where, and for how long it may run.
func (r *router[T]) watchQueueing(watch func(client.Object, handler.EventHandler, ...predicate.Predicate)) {
	watch(&kueue.Workload{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfWorkload), predicate.Funcs{CreateFunc: isNewToJob})
	// Pods of the job may be refused.
	watch(&corev1.Event{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfRefusal), predicate.NewPredicateFuncs(isRefusal))
	// A job may wait for its queue to be created.
	watch(&kueue.LocalQueue{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfNamespace), notInInitialList,
		predicate.GenerationChangedPredicate{})
	watch(&kueue.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfClusterQueue), r.read.clusterQueues.Forget(),
		notInInitialList, watching.TakesOtherJobs)
	// Or for a class or a flavor that it names.
	for _, named := range []client.Object{&kueue.WorkloadPriorityClass{}, &schedulingv1.PriorityClass{},
		&kueue.ResourceFlavor{}} {
		watch(named, handler.EnqueueRequestsFromMapFunc(r.allJobs), notInInitialList,
			predicate.GenerationChangedPredicate{})
	}
	watch(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfNamespace), notInInitialList,
		predicate.LabelChangedPredicate{})
	if r.api.Abilities.Pauses {
		// The time limit of a queue is an annotation. Package admission/lifecycle sees to the jobs of other APIs.
		watch(&kueue.LocalQueue{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfNamespace), limitChanged)
		watch(&kueue.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(r.allJobs), r.read.clusterQueues.Forget(),
			limitChanged)
	}
}

// limitChanged passes changes of the time limit of a queue.
var limitChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return workload.MaxDuration(e.ObjectOld) != workload.MaxDuration(e.ObjectNew)
	},
}

// concerns reports whether events of the object can matter. For external kinds, objects whose owner is queued for them
// are left out: there are many of them. One that has a Workload of its own follows that.
func (r *router[T]) concerns(object client.Object) bool {
	if !r.api.Queueing.External || metav1.GetControllerOfNoCopy(object) == nil {
		return true
	}
	byOwner, err := QueuedByOwner(context.Background(), r.read.client, object, r.apis...)
	if err != nil || !byOwner {
		return true // a reconcile reports the error
	}
	itself, err := r.read.hasWorkload(context.Background(), object)
	return err != nil || itself
}

// jobsOfWorkload returns the job that controls the Workload, and the jobs that name it: they wait for one that another
// job controls, too, and are told when that is gone.
func (r *router[T]) jobsOfWorkload(_ context.Context, w client.Object) []reconcile.Request {
	requests := r.prebuiltIndex.JobsNaming(w)
	if owner := metav1.GetControllerOf(w); jobs.RefersTo(owner, r.api.kind()) {
		requests = append(requests, requestFor(w.GetNamespace(), owner.Name)...)
	}
	return requests
}

// requestFor asks for a reconcile of the named job.
func requestFor(namespace, job string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: job}}}
}

// jobsOfRefusal returns the job whose pods were refused, or the owner of the child whose pods were refused: of a batch
// Job, or of a VCJob that Volcano runs.
func (r *router[T]) jobsOfRefusal(ctx context.Context, object client.Object) []reconcile.Request {
	about := object.(*corev1.Event).InvolvedObject
	key := client.ObjectKey{Namespace: about.Namespace, Name: about.Name}
	kind := about.GroupVersionKind().GroupKind()
	if kind == r.api.kind() {
		return requestFor(key.Namespace, key.Name)
	}
	for _, empty := range r.read.childKinds() {
		gvk, err := r.read.client.GroupVersionKindFor(empty)
		if err != nil || gvk.GroupKind() != kind {
			continue
		}
		child := empty.DeepCopyObject().(client.Object)
		if r.read.client.Get(ctx, key, child, client.DisableReadYourWritesConsistency) != nil {
			return nil // one that is gone has no pods
		}
		if owner := metav1.GetControllerOf(child); jobs.RefersTo(owner, r.api.kind()) {
			return requestFor(about.Namespace, owner.Name)
		}
	}
	return nil
}

// jobsOfNamespace returns the jobs of the API in the namespace of a queue, or in a namespace.
func (r *router[T]) jobsOfNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	return r.jobs(ctx, client.InNamespace(cmp.Or(object.GetNamespace(), object.GetName())))
}

// jobsOfClusterQueue returns the jobs that may refer to the ClusterQueue by its name.
func (r *router[T]) jobsOfClusterQueue(ctx context.Context, object client.Object) []reconcile.Request {
	if object.GetName() == muster.DefaultQueue && r.api.Queueing.Rule == jobs.QueueRequired {
		return r.jobs(ctx)
	}
	named := r.jobs(ctx, client.MatchingLabels{kueue.QueueLabel: object.GetName()})
	if r.api.Queueing.Field == nil {
		return named
	}
	return append(named, r.jobsWhere(ctx, func(job T) bool { return r.api.Queueing.Field(job) == object.GetName() })...)
}

// allJobs returns all jobs of the API: classes and flavors change rarely.
func (r *router[T]) allJobs(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.jobs(ctx)
}

func (r *router[T]) jobs(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	return r.jobsWhere(ctx, func(T) bool { return true }, options...)
}

// jobsWhere returns the jobs for which the condition holds.
func (r *router[T]) jobsWhere(ctx context.Context, holds func(T) bool,
	options ...client.ListOption) []reconcile.Request {
	var out []reconcile.Request
	err := each(ctx, r.read.client, r.api.New(), func(job client.Object) {
		if holds(job.(T)) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
	}, append(options, client.DisableReadYourWritesConsistency)...)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the jobs that a queue concerns")
	}
	return out
}

// jobsAwaitingNodes returns the jobs that wait for a gain of nodes, which this event is one of.
func (r *router[T]) jobsAwaitingNodes(ctx context.Context, _ client.Object) []reconcile.Request {
	r.read.nodeGains.Note(r.clock.Now())
	return r.jobsWhere(ctx, r.api.Reads.AwaitsNodes)
}

// notInInitialList filters out the initial list of kinds that concern many jobs: each job is reconciled at the start
// anyway, once the caches are synced.
var notInInitialList = predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}

// isNewToJob reports whether a new Workload may say something that its job does not know. It does not if the job's own
// reconcile created it and nothing has been reported in its status yet.
func isNewToJob(e event.CreateEvent) bool {
	w, ok := e.Object.(*kueue.Workload)
	if !ok || !w.DeletionTimestamp.IsZero() || len(w.Status.Conditions) > 0 || len(w.Status.AdmissionChecks) > 0 ||
		w.Status.Admission != nil {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(w)
	return owner == nil || !workloads.IsName(w.Name, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind),
		owner.Name, owner.UID)
}

// requestsOfPods enqueues the job of a pod.
func requestsOfPods[T client.Object](p *jobs.PodsOf[T]) handler.EventHandler {
	jobOf := func(_ context.Context, pod client.Object) []reconcile.Request {
		return requestFor(pod.GetNamespace(), p.JobOf(pod.(*corev1.Pod)))
	}
	return watching.BatchRequests(handler.EnqueueRequestsFromMapFunc(jobOf), podsBatchDelay)
}

// podsThatMatter filters out events of pods that cannot matter to a job.
func podsThatMatter[T client.Object](p *jobs.PodsOf[T]) predicate.Predicate {
	of := func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		return ok && p.JobOf(pod) != ""
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return of(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return of(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return of(e.ObjectNew) && p.Matters(e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod))
		},
	}
}

// podsBatchDelay is how long changes of a job's pods are batched: many pods change at once, and each reconcile reads
// all of them.
const podsBatchDelay = 50 * time.Millisecond

// goneNames remembers which batch Jobs were deleted lately. The zero value is ready for use.
type goneNames struct {
	mu    sync.Mutex
	at    map[types.NamespacedName]time.Time
	swept time.Time
}

// note remembers that the Job is gone.
func (g *goneNames) note(job client.Object, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at == nil {
		g.at = map[types.NamespacedName]time.Time{}
	}
	g.at[client.ObjectKeyFromObject(job)] = now
	if now.Sub(g.swept) < time.Minute {
		return
	}
	g.swept = now
	for name, at := range g.at {
		if now.Sub(at) > answerPatience {
			delete(g.at, name)
		}
	}
}

// hadName reports whether another Job of the Job's name was deleted lately.
func (g *goneNames) hadName(job client.Object, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, is := g.at[client.ObjectKeyFromObject(job)]
	return is && now.Sub(at) <= answerPatience
}
