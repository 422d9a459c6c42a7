package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

// NewReconciler returns the reconciler of one API as AddTo creates it, without a manager.
func NewReconciler[T client.Object](api jobs.API[T], c client.Client, recorder events.EventRecorder,
	clock clock.PassiveClock, apis ...Served) reconcile.Reconciler {
	settings := Settings{Backoff: workloads.Backoff{Base: time.Minute, Max: time.Hour}}
	s := served[T]{api}
	r := newReconciler(s, c, c, write.NewExecutor(c, recorder), settings, api.Watch.Owns, append(apis, s), clock)
	r.retries = nil
	return r
}

// SetOptionalKindsServed sets whether the cluster serves the optional kinds of the reconciler.
func SetOptionalKindsServed[T client.Object](r reconcile.Reconciler, served bool) {
	for _, l := range r.(*reconciler[T]).read.optional {
		l.known.Store(true)
		l.seen.Store(served)
	}
}

// SetLive sets what the reconciler reads from the API server itself, in place of its cache.
func SetLive[T client.Object](r reconcile.Reconciler, live client.Reader) {
	r.(*reconciler[T]).read.live = live
}

// SetAgent sets what the reconciler knows of agents, as of now.
func SetAgent[T client.Object](r reconcile.Reconciler, agent func() podspec.Agent) {
	r.(*reconciler[T]).read.agent = agent
}

// The indexes by which children, and the Workloads of jobs that are gone, are found.
const (
	ControllerIndex = controllerIndex
	OwnerIndex      = ownerIndex
	RefusalIndex    = refusalIndex
)

var (
	ControllerUID = controllerUID
	OwnerKeys     = ownerKeys
	RefusalKeys   = refusalKeys
)

// ControllerOf returns the index by which children of jobs of the API are found.
func ControllerOf[T client.Object](api jobs.API[T]) client.IndexerFunc {
	return served[T]{api}.controllerOf
}

// routing is the router of a reconciler of any API.
type routing interface {
	jobsOfWorkload(context.Context, client.Object) []reconcile.Request
	jobsOfRefusal(context.Context, client.Object) []reconcile.Request
	concerns(client.Object) bool
	noteGone(client.Object, time.Time)
}

func (r *reconciler[T]) routing() routing { return r.router }

func (r *router[T]) noteGone(job client.Object, at time.Time) { r.gone.note(job, at) }

func routingOf(r reconcile.Reconciler) routing { return r.(interface{ routing() routing }).routing() }

// JobsOfWorkload returns the jobs that are reconciled for an event of the Workload.
func JobsOfWorkload(r reconcile.Reconciler, w *kueue.Workload) []reconcile.Request {
	return routingOf(r).jobsOfWorkload(context.Background(), w)
}

// JobsOfRefusal returns the jobs that are reconciled for an event that says that pods are refused.
func JobsOfRefusal(r reconcile.Reconciler, event *corev1.Event) []reconcile.Request {
	return routingOf(r).jobsOfRefusal(context.Background(), event)
}

// WorkloadFor returns a Workload of the job without any pod sets.
func WorkloadFor(kind schema.GroupVersionKind, job client.Object) *kueue.Workload {
	state := workloads.State{Described: jobs.Description{PodSets: make([]kueue.PodSet, 1)}}
	writes, _ := workloads.Job{Object: job, Kind: kind}.Sync(state, "cq", jobs.Progress{}, time.Time{})
	w := writes[0].Object().(*kueue.Workload)
	w.Spec.PodSets = nil
	return w
}

// LongWorkloadName returns the name that earlier versions gave to the Workload of the job.
func LongWorkloadName(kind schema.GroupVersionKind, job client.Object) string {
	names := workloads.Names(kind, job.GetName(), job.GetUID())
	return names[len(names)-1]
}

// NoteGone makes the reconciler know that a batch Job was deleted.
func NoteGone(r reconcile.Reconciler, job client.Object, at time.Time) {
	routingOf(r).noteGone(job, at)
}

// Concerns reports whether the job is reconciled for events of itself.
func Concerns(r reconcile.Reconciler, job client.Object) bool { return routingOf(r).concerns(job) }
