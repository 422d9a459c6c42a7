package jobs

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// abandoned reconciles the Workloads of jobs that another controller runs now.
type abandoned[T client.Object] struct{ *reconciler[T] }

// Abandon adds a controller to the manager that deletes the Workloads that Muster made for jobs of an API that another
// controller runs now: nothing else would delete them, and they would keep or get quota. While pods that Muster started
// still run, their Workload keeps its quota. The jobs themselves are left alone, and their kind need not be served.
func Abandon[T client.Object](mgr ctrl.Manager, x *Executor, api API[T]) error {
	a := abandoned[T]{&reconciler[T]{api: api, client: mgr.GetClient(), live: mgr.GetAPIReader(), executor: x, clock: clock.RealClock{}}}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("abandoned-"+api.kind().String()).
		For(&kueue.Workload{}, builder.WithPredicates(predicate.NewPredicateFuncs(a.isMade))).
		Complete(a)
	if err != nil {
		return fmt.Errorf("adding the controller of abandoned Workloads of %s: %w", api.kind(), err)
	}
	return nil
}

// isMade reports whether Muster made the Workload for a job of the API.
func (a abandoned[T]) isMade(w client.Object) bool {
	owner := metav1.GetControllerOf(w)
	if owner == nil || w.GetName() != workloadName(a.api.Kind, owner.Name, owner.UID) {
		return false
	}
	keys := ownerKeys(w)
	return len(keys) == 1 && keys[0] == ownerKey(a.api.kind(), owner.Name)
}

// Reconcile deletes the Workload, and removes its finalizer once none of the job's pods uses its quota.
func (a abandoned[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w kueue.Workload
	if err := a.client.Get(ctx, req.NamespacedName, &w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	write := Delete(&w, metav1.DeletePropagationBackground)
	if !w.DeletionTimestamp.IsZero() {
		left, err := a.podsLeft(ctx, &w)
		if err != nil || left {
			return ctrl.Result{RequeueAfter: nextPoll(a.clock.Since(w.DeletionTimestamp.Time))}, err
		}
		free := withoutFinalizer(&w, false)
		if free == nil {
			return ctrl.Result{}, nil // another controller's finalizer holds it
		}
		write = Change(&w, free)
	}
	err := a.executor.Run(ctx, &w, Plan{Writes: []Write{write}})
	if isConflict(err) {
		return ctrl.Result{}, nil // the watch triggers another reconcile
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
