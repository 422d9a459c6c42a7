package jobs

import (
	"context"
	"fmt"
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/musterhq/muster/internal/jobs/write"
)

// Served is a job API of any type, as Serve returns it for AddTo.
type Served interface {
	kind() schema.GroupKind
	owned(podGroups bool) []client.Object
	controllerOf(object client.Object) []string
	podLabels(uid types.UID) map[string]string
	madeFor(object client.Object) types.UID
	queuesFor(ctx context.Context, c client.Reader, object client.Object) (bool, error)
	addTo(mgr ctrl.Manager, watches *sharedWatches, x *write.Executor, settings Settings, owns []client.Object, apis []Served) error
}

// served is a job API with what its controller asks of it.
type served[T client.Object] struct{ API[T] }

// Serve returns the API for AddTo.
func Serve[T client.Object](api API[T]) Served { return served[T]{api} }

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
func (s served[T]) addTo(mgr ctrl.Manager, watches *sharedWatches, x *write.Executor, settings Settings, owns []client.Object, apis []Served) error {
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

// needsReconcile reports whether the job has to be reconciled for an update of a child. One that gets another controller,
// or none, is no child any more: no later event of it, not even its deletion, reaches the job.
func (s served[T]) needsReconcile(e event.UpdateEvent) bool {
	return s.Matters == nil || controllerOf(e.ObjectOld) != controllerOf(e.ObjectNew) || s.Matters(e.ObjectOld, e.ObjectNew)
}

// controllerOf returns the UID of what controls the object, "" if nothing does.
func controllerOf(object client.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// isUnexpected reports whether the job has to be reconciled for a new child.
func (s served[T]) isUnexpected(e event.CreateEvent) bool {
	return s.Expected == nil || !s.Expected(e.Object)
}

// Kinds returns the kinds of the APIs' jobs.
func Kinds(apis ...Served) (out []schema.GroupKind) {
	for _, api := range apis {
		out = append(out, api.kind())
	}
	return out
}

func controllerUID(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// queuesFor reports whether a job of the API controls the object, and is queued for it. A job that does not exist any
// more counts as if it were: the garbage collector is about to delete the object, or to remove the reference. It cannot
// do so if it does not know the version in the reference.
func (s served[T]) queuesFor(ctx context.Context, c client.Reader, object client.Object) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(object)
	if s.CreatesJob == nil || IsNobodys(object) || !refersTo(owner, s.kind()) || !slices.ContainsFunc(s.Owns, sameType(object)) {
		return false, nil
	}
	job := s.New()
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}
	// It is read for each event of a job that has an owner, and users, not Muster, write what is asked of it here.
	err := c.Get(ctx, key, job, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	switch {
	case apierrors.IsNotFound(err) || err == nil && job.GetUID() != owner.UID:
		return owner.APIVersion == s.Kind.GroupVersion().String(), nil
	case err != nil:
		return false, fmt.Errorf("reading %s %s, the owner of %s: %w", s.Kind.Kind, key, object.GetName(), err)
	}
	return s.CreatesJob(job, object), nil
}

// targetKeys returns the index keys of an object without a controller.
func (s served[T]) targetKeys(object client.Object) []string {
	switch name, uid := s.Targets(object); {
	case name == "" && uid == "":
		return nil
	case uid != "":
		return []string{string(uid), anyTargetKey(name)}
	default:
		return []string{targetKey(name), anyTargetKey(name)}
	}
}

// targets enqueues the job that an object without a controller is meant for.
func (s served[T]) targets() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		name, _ := s.Targets(object)
		if name == "" || metav1.GetControllerOf(object) != nil {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}}}
	})
}
