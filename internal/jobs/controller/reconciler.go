package controller

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/controller/waiting"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/jobs/write"
)

// reconciler keeps the jobs of one API in sync with their Workloads and their children.
type reconciler[T client.Object] struct {
	api served[T]
	// apis lists all job APIs: jobs of some are queued for jobs of others that they create.
	apis     []Served
	read     *reader[T]
	router   *router[T]
	executor *write.Executor
	// backoff applies to jobs whose pods are refused.
	backoff   workloads.Backoff
	readiness waiting.Readiness
	// busy reports whether the API server is overloaded; nil means never.
	busy  func() bool
	clock clock.PassiveClock
	// statuses and reclaims hold back writes that can wait.
	statuses, reclaims waiting.Deferrals
	states             jobStates
	standing           waiting.StandingEvents
	missingPods        waiting.Memory[jobs.MissingPods]
	refused            waiting.Memory[jobs.RefusedObjects]
	mustGoOn           waiting.Memory[bool]
	unanswered         waiting.Memory[unanswered]
	retries            *waiting.Retries
}

// newReconciler returns the reconciler of one API. live reads from the API server: pods, which the cache does not keep
// for the whole cluster, and objects for which a stale cache must not be trusted.
func newReconciler[T client.Object](
	api served[T], c client.Client, live client.Reader, x *write.Executor, settings Settings, owns []client.Object,
	apis []Served, clock clock.PassiveClock,
) *reconciler[T] {
	read := &reader[T]{api: api, client: c, live: live, owns: owns,
		nativeGangs: settings.NativeGangs, strictServiceNames: settings.StrictServiceNames, agent: settings.Agent}
	for _, kind := range api.Watch.Optional {
		read.optional = append(read.optional, &optionalKind{OptionalKind: kind})
	}
	return &reconciler[T]{
		api: api, apis: apis, read: read, router: &router[T]{api: api, apis: apis, read: read, clock: clock},
		executor: x, clock: clock,
		backoff: settings.Backoff, readiness: settings.Readiness, busy: settings.Busy, retries: waiting.NewRetries(clock),
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
func (r *reconciler[T]) countsJobs() bool { return !r.api.Queueing.External }

// inQueue returns the job as far as its Workload depends on it.
func (r *reconciler[T]) inQueue(job T) workloads.Job {
	return workloads.Job{Object: job, Kind: r.api.Kind, Rule: r.api.Queueing.Rule, Backoff: r.backoff,
		Pauses: r.api.Abilities.Pauses, Delegates: r.api.Queueing.Delegates, RequeuesChanged: r.api.Queueing.RequeuesChanged}
}
