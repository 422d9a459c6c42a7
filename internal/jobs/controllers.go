package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/podspec"
)

const (
	// controllerIndex finds the children of a job by its UID.
	controllerIndex = "metadata.controller.uid"
	// reconcilesAtOnce is how many jobs of an API are reconciled concurrently.
	reconcilesAtOnce = 16
	// longestRetry caps the backoff after errors, so that a problem that users fix is noticed soon.
	longestRetry = time.Minute
)

// Served is a job API of any type, as Serve returns it for AddTo.
type Served interface {
	kind() schema.GroupKind
	owned(podGroups bool) []client.Object
	controllerOf(object client.Object) []string
	podLabels(uid types.UID) map[string]string
	madeFor(object client.Object) types.UID
	queuesFor(ctx context.Context, c client.Reader, object client.Object) (bool, error)
	addTo(mgr ctrl.Manager, watches *sharedWatches, x *Executor, settings Settings, owns []client.Object, apis []Served) error
}

// served is a job API with what its controller asks of it.
type served[T client.Object] struct{ API[T] }

// Serve returns the API for AddTo.
func Serve[T client.Object](api API[T]) Served { return served[T]{api} }

// Settings are the same for all job APIs.
type Settings struct {
	// Backoff applies to jobs whose pods are refused.
	Backoff Backoff
	// NativeGangs makes pods belong to PodGroups; see HasNativeGangs. Without it, PodGroups left from an earlier start
	// are loosened.
	NativeGangs bool
	// StrictServiceNames says that Services must have names that begin with a letter; see HasStrictServiceNames.
	StrictServiceNames bool
	// Readiness says when it is reported on Workloads that their pods are ready.
	Readiness Readiness
	// Busy reports whether the API server is overloaded; nil means never.
	Busy func() bool
	// Agent returns what is needed to run commands of pods under muster-agent, as of now. Nil if no job wants it.
	Agent func() podspec.Agent
}

// AddTo adds a controller for each of the APIs to the manager. The manager's cache should keep only the events that
// Refusals selects.
func AddTo(mgr ctrl.Manager, x *Executor, settings Settings, apis ...Served) error {
	podGroups := settings.NativeGangs
	if !podGroups {
		var err error
		if podGroups, err = servesPodGroups(mgr.GetRESTMapper()); err != nil {
			return err
		}
	}
	if err := indexChildren(mgr, podGroups, apis); err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &kueue.Workload{}, ownerIndex, ownerKeys); err != nil {
		return fmt.Errorf("indexing Workloads by the job's name: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Event{}, refusalIndex, refusalKeys); err != nil {
		return fmt.Errorf("indexing events by what they are about: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Node{}, HostnameIndex, HostnameOf); err != nil {
		return fmt.Errorf("indexing Nodes by host name: %w", err)
	}
	if err := (countForgetter{mgr.GetClient()}).addTo(mgr); err != nil {
		return fmt.Errorf("adding what forgets the counts of deleted namespaces: %w", err)
	}
	left := &orphans{client: mgr.GetClient(), live: mgr.GetAPIReader(), executor: x, clock: clock.RealClock{}, apis: apis}
	if err := left.addTo(mgr); err != nil {
		return err
	}
	watches := newSharedWatches(mgr.GetCache())
	for _, api := range apis {
		if err := api.addTo(mgr, watches, x, settings, api.owned(podGroups), apis); err != nil {
			return err
		}
	}
	return nil
}

// indexChildren makes the cache index children by the job that they belong to. A kind that several APIs own is indexed
// once.
func indexChildren(mgr ctrl.Manager, podGroups bool, apis []Served) error {
	indexed := map[schema.GroupVersionKind]bool{}
	for _, api := range apis {
		for _, kind := range api.owned(podGroups) {
			gvk, err := apiutil.GVKForObject(kind, mgr.GetScheme())
			if err != nil {
				return fmt.Errorf("indexing %T: %w", kind, err)
			}
			if indexed[gvk] {
				continue
			}
			indexed[gvk] = true
			if err := mgr.GetFieldIndexer().IndexField(context.Background(), kind, controllerIndex, api.controllerOf); err != nil {
				return fmt.Errorf("indexing %s by controller: %w", gvk.Kind, err)
			}
		}
	}
	return nil
}

func controllerUID(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// controllerOf returns the index key of the job that the object is a child of.
func (s served[T]) controllerOf(object client.Object) []string {
	owners := controllerUID(object)
	if uid := s.madeFor(object); len(owners) == 0 && uid != "" {
		return []string{string(uid)}
	}
	if len(owners) == 0 && s.Targets != nil {
		return s.targetKeys(object)
	}
	return owners
}

// madeFor returns the UID of the job that the operator has created the object for, "" if it is none of this API.
func (s served[T]) madeFor(object client.Object) types.UID {
	if s.MadeFor == nil {
		return ""
	}
	return s.MadeFor(object)
}

// notInInitialList filters out the initial list of kinds that concern many jobs: each job is reconciled at the start
// anyway, once the caches are synced.
var notInInitialList = predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}

func (s served[T]) kind() schema.GroupKind { return s.Kind.GroupKind() }

func (s served[T]) podLabels(uid types.UID) map[string]string { return s.PodLabels(uid) }

// owned returns the kinds that Plan may create. PodGroups are among them wherever they are served, so that those left
// from an earlier start are loosened.
func (s served[T]) owned(podGroups bool) []client.Object {
	if !podGroups || !s.Gangs {
		return s.Owns
	}
	return append(slices.Clone(s.Owns), &schedulingv1beta1.PodGroup{})
}

// asksAbout reports whether the definition is of a kind in AsksKinds.
func (s served[T]) asksAbout(definition client.Object) bool {
	return slices.ContainsFunc(s.AsksKinds, func(kind schema.GroupResource) bool { return kind.String() == definition.GetName() })
}

// addTo adds the controller of the API to the manager.
func (s served[T]) addTo(mgr ctrl.Manager, watches *sharedWatches, x *Executor, settings Settings, owns []client.Object, apis []Served) error {
	r := newReconciler(s, mgr.GetClient(), mgr.GetAPIReader(), x, settings, owns, apis, clock.RealClock{})
	// It runs on the leader, from the time that jobs are reconciled; the first job may come long after.
	begin := manager.RunnableFunc(func(context.Context) error { r.states.start(r.clock.Now()); return nil })
	if err := mgr.Add(begin); err != nil {
		return fmt.Errorf("adding the counts of %s: %w", s.Kind.Kind, err)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(s.Kind.GroupKind().String()).
		For(s.New(), builder.WithPredicates(r.router.notesGone(), predicate.NewPredicateFuncs(r.router.concerns))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: reconcilesAtOnce,
			RateLimiter:             r.retries,
		})
	return r.router.watch(mgr, watches, b).Complete(r)
}

// watch makes the controller watch all that its jobs depend on.
func (r *router[T]) watch(mgr ctrl.Manager, watches *sharedWatches, b *builder.Builder) *builder.Builder {
	api := r.api
	watch := func(kind client.Object, of handler.EventHandler, only ...predicate.Predicate) {
		b = b.WatchesRawSource(watches.source(kind, of, only...))
	}
	r.watchQueueing(watch)
	if api.AwaitsNodes != nil {
		watch(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.jobsAwaitingNodes), notInInitialList, gainsOfNodes)
	}
	if len(api.AsksKinds) > 0 {
		definition := &metav1.PartialObjectMetadata{}
		definition.SetGroupVersionKind(definitionKind)
		b = b.WatchesMetadata(definition, handler.EnqueueRequestsFromMapFunc(r.allJobs), builder.WithPredicates(predicate.And(
			notInInitialList, predicate.NewPredicateFuncs(api.asksAbout), predicate.ResourceVersionChangedPredicate{})))
	}
	for _, kind := range r.read.owns {
		// Some children are shared: the jobs that own one without controlling it are reconciled too.
		of := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), api.New())
		watch(kind, batchRequests(of, api.BatchDelay), r.notesGone(), predicate.Funcs{CreateFunc: api.isUnexpected, UpdateFunc: api.needsReconcile})
		if api.Targets != nil {
			watch(kind, api.targets(), predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
		}
	}
	for _, l := range r.read.optional {
		b = b.WatchesRawSource(r.optionalSource(mgr, l))
	}
	if api.Pods != nil && api.Pods.JobOf != nil {
		watch(&corev1.Pod{}, requestsOfPods(api.Pods), podsThatMatter(api.Pods))
	}
	return b
}

// watchQueueing watches what decides whether a job is queued, where, and for how long it may run.
func (r *router[T]) watchQueueing(watch func(client.Object, handler.EventHandler, ...predicate.Predicate)) {
	watch(&kueue.Workload{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfWorkload), predicate.Funcs{CreateFunc: isNewToJob})
	// Pods of the job may be refused.
	watch(&corev1.Event{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfRefusal), predicate.NewPredicateFuncs(isRefusal))
	// A job may wait for its queue to be created.
	watch(&kueue.LocalQueue{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfNamespace), notInInitialList, predicate.GenerationChangedPredicate{})
	watch(&kueue.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfClusterQueue), r.read.clusterQueues.forget(), notInInitialList, takesOtherJobs)
	// Or for a class or a flavor that it names.
	watch(&kueue.WorkloadPriorityClass{}, handler.EnqueueRequestsFromMapFunc(r.allJobs), notInInitialList, predicate.GenerationChangedPredicate{})
	watch(&schedulingv1.PriorityClass{}, handler.EnqueueRequestsFromMapFunc(r.allJobs), notInInitialList, predicate.GenerationChangedPredicate{})
	watch(&kueue.ResourceFlavor{}, handler.EnqueueRequestsFromMapFunc(r.allJobs), notInInitialList, predicate.GenerationChangedPredicate{})
	watch(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfNamespace), notInInitialList, predicate.LabelChangedPredicate{})
	// The time limit of a ClusterQueue is an annotation.
	watch(&kueue.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(r.allJobs), r.read.clusterQueues.forget(), predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return maxDuration(e.ObjectOld.(*kueue.ClusterQueue)) != maxDuration(e.ObjectNew.(*kueue.ClusterQueue))
		},
	})
}

// concerns reports whether events of the object can matter. For external kinds, objects whose owner is queued for them
// are left out: there are many of them. One that has a Workload of its own follows that.
func (r *router[T]) concerns(object client.Object) bool {
	if !r.api.External || metav1.GetControllerOfNoCopy(object) == nil {
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
	jobs := r.prebuiltIndex.jobsNaming(w)
	if owner := metav1.GetControllerOf(w); refersTo(owner, r.api.kind()) {
		jobs = append(jobs, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: w.GetNamespace(), Name: owner.Name}})
	}
	return jobs
}

func isRefusal(object client.Object) bool {
	event, ok := object.(*corev1.Event)
	return ok && event.Reason == FailedCreate
}

// jobsOfRefusal returns the job whose pods were refused, or the owner of the child whose pods were refused: of a batch Job,
// or of a VCJob that Volcano runs.
func (r *router[T]) jobsOfRefusal(ctx context.Context, object client.Object) []reconcile.Request {
	about := object.(*corev1.Event).InvolvedObject
	key := client.ObjectKey{Namespace: about.Namespace, Name: about.Name}
	kind := about.GroupVersionKind().GroupKind()
	if kind == r.api.kind() {
		return []reconcile.Request{{NamespacedName: key}}
	}
	for _, empty := range r.read.childKinds() {
		gvk, err := apiutil.GVKForObject(empty, r.read.client.Scheme())
		if err != nil || gvk.GroupKind() != kind {
			continue
		}
		child := empty.DeepCopyObject().(client.Object)
		if r.read.client.Get(ctx, key, child, client.DisableReadYourWritesConsistency) != nil {
			return nil // one that is gone has no pods
		}
		if owner := metav1.GetControllerOf(child); refersTo(owner, r.api.kind()) {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: about.Namespace, Name: owner.Name}}}
		}
	}
	return nil
}

// jobsOfNamespace returns the jobs of the API in the namespace of a queue, or in a namespace.
func (r *router[T]) jobsOfNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = object.GetName()
	}
	return r.jobs(ctx, client.InNamespace(namespace))
}

// jobsOfClusterQueue returns the jobs that may refer to the ClusterQueue by its name.
func (r *router[T]) jobsOfClusterQueue(ctx context.Context, object client.Object) []reconcile.Request {
	if object.GetName() == muster.DefaultQueue && r.api.Queue == QueueRequired {
		return r.jobs(ctx)
	}
	named := r.jobs(ctx, client.MatchingLabels{kueue.QueueLabel: object.GetName()})
	if r.api.QueueField == nil {
		return named
	}
	return append(named, r.jobsWhere(ctx, func(job T) bool { return r.api.QueueField(job) == object.GetName() })...)
}

// allJobs returns all jobs of the API: classes and flavors change rarely.
func (r *router[T]) allJobs(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.jobs(ctx)
}

func (r *router[T]) jobs(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	return r.jobsWhere(ctx, func(T) bool { return true }, options...)
}

// jobsWhere returns the jobs for which the condition holds.
func (r *router[T]) jobsWhere(ctx context.Context, holds func(T) bool, options ...client.ListOption) []reconcile.Request {
	list, err := newListOf(r.api.New(), r.read.client)
	if err == nil {
		err = r.read.client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)...)
	}
	var out []reconcile.Request
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if job := item.(T); holds(job) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
			}
			return nil
		})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the jobs that a queue concerns")
	}
	return out
}

// Kinds returns the kinds of the APIs' jobs.
func Kinds(apis ...Served) (out []schema.GroupKind) {
	for _, api := range apis {
		out = append(out, api.kind())
	}
	return out
}
