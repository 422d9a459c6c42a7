package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// abandoned reconciles the Workloads of jobs that Muster no longer runs.
type abandoned[T client.Object] struct {
	api      jobs.API[T]
	read     *reader[T]
	executor *write.Executor
	clock    clock.PassiveClock
	// former says that these are the jobs of any other API group than the API's, which no controller runs. Otherwise
	// they are the API's own, which another controller runs now.
	former bool
}

// Abandon adds a controller to the manager that deletes the Workloads that Muster made for jobs of an API that another
// controller runs now: nothing else would delete them, and they would keep or get quota. While pods that Muster started
// still run, their Workload keeps its quota. The jobs themselves are left alone, and their kind need not be served.
func Abandon[T client.Object](mgr ctrl.Manager, x *write.Executor, api jobs.API[T]) error {
	return abandonedIn(mgr, x, api, "abandoned", false)
}

// AbandonFormer adds a controller to the manager that deletes the Workloads that Muster made for jobs of the API while
// that had another API group. They are deleted only once no pods use their quota, so that jobs run on undisturbed if
// the former group is configured again.
func AbandonFormer[T client.Object](mgr ctrl.Manager, x *write.Executor, api jobs.API[T]) error {
	return abandonedIn(mgr, x, api, "former", true)
}

func abandonedIn[T client.Object](mgr ctrl.Manager, x *write.Executor, api jobs.API[T], name string,
	former bool) error {
	kind := api.Kind.GroupKind().String()
	read := &reader[T]{api: served[T]{api}, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	a := abandoned[T]{api: api, read: read, executor: x, clock: clock.RealClock{}, former: former}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name+"-"+kind).
		For(&kueue.Workload{}, builder.WithPredicates(predicate.NewPredicateFuncs(a.isMade))).
		Complete(a)
	if err != nil {
		return fmt.Errorf("adding the controller of %s Workloads of %s: %w", name, kind, err)
	}
	return nil
}

// isMade reports whether Muster made the Workload for one of the jobs.
func (a abandoned[T]) isMade(w client.Object) bool {
	owner := metav1.GetControllerOfNoCopy(w)
	if owner == nil || owner.Kind != a.api.Kind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && (gv.Group != a.api.Kind.Group) == a.former &&
		workloads.IsName(w.GetName(), gv.WithKind(owner.Kind), owner.Name, owner.UID)
}

// Reconcile deletes the Workload, and removes its finalizer once none of the job's pods uses its quota.
func (a abandoned[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w kueue.Workload
	if err := a.read.client.Get(ctx, req.NamespacedName, &w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deleted := !w.DeletionTimestamp.IsZero()
	if a.former && !deleted && workload.IsFinished(&w) {
		return ctrl.Result{}, nil // its retention is configured
	}
	if deleted || a.former {
		left, err := a.read.podsLeft(ctx, &w)
		if err != nil || left {
			poll := longestPoll
			if deleted {
				poll = nextPoll(a.clock.Since(w.DeletionTimestamp.Time))
			}
			return ctrl.Result{RequeueAfter: poll}, err
		}
	}
	end := write.Delete(&w)
	if deleted {
		free := workloads.WithoutFinalizer(&w, false)
		if free == nil {
			return ctrl.Result{}, nil // another controller's finalizer holds it
		}
		end = write.Change(&w, free)
	}
	err := a.executor.Run(ctx, &w, write.Batch{Writes: []write.Write{end}})
	if write.IsOvertaken(err) {
		return ctrl.Result{}, nil // the watch triggers another reconcile
	}
	return ctrl.Result{}, err
}
