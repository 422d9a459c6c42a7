package decisions

import (
	"context"
	"path"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/plain"
)

const (
	// concurrentDecisions is how many decisions are written concurrently: enough to keep an API server busy that
	// answers within milliseconds. More would only queue there, and delay the pod status updates that free quota for
	// others.
	concurrentDecisions = 8
	// LongestRetry bounds the backoff after a failed write.
	LongestRetry = 30 * time.Second
)

// Writer writes admissions, changes of places and of sizes, and evictions: one conditional status write each, the most
// urgent first, because quota that was decided on but not written yet is used by nobody. The engine assumes that a
// decision takes effect until the writer reports its outcome, and decides again if the Workload has changed or is gone.
// Any other error leaves open whether the write took effect, so the writer reads the Workload and retries, unless the
// API server refuses the write, or keeps failing while the Workload does not change.
type Writer struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	Budget *WriteBudget
	Events *JobEvents
	report func(engine.Event)
	queue  workqueue.TypedRateLimitingInterface[engine.Key]
	// denials backs off reports of writes that the API server refused for Workloads that hold quota. The engine reacts to
	// each refusal by choosing another Workload that holds quota, which may well be refused too.
	denials workqueue.TypedRateLimiter[struct{}]

	mu   sync.Mutex
	open map[engine.Key]*openDecision
}

// openDecision is a decision that is still to be written.
type openDecision struct {
	engine.Decision
	// notBefore is the earliest time of the first write attempt. attempted is set once one was made: it may take
	// effect.
	notBefore time.Time
	attempted bool
	// refusal is the API server's refusal, kept until the backoff for reporting it is over.
	refusal error
	// uncertain is the Workload as it was before a write whose outcome is unknown, nil if there is none.
	uncertain *kueue.Workload
	failures  failures
}

// NewWriter returns a writer that writes with the client, and reads from live what the cache may not have yet. It hands
// the outcome of each decision to report.
func NewWriter(c client.Client, live client.Reader, clock clock.PassiveClock, budget *WriteBudget,
	report func(engine.Event)) *Writer {
	a := &Writer{client: c, live: live, clock: clock, Budget: budget, report: report, open: map[engine.Key]*openDecision{},
		denials: workqueue.NewTypedItemExponentialFailureRateLimiter[struct{}](5*time.Millisecond, LongestRetry)}
	a.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[engine.Key](5*time.Millisecond, LongestRetry),
		workqueue.TypedRateLimitingQueueConfig[engine.Key]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[engine.Key]{Queue: workqueue.NewTypedWithConfig(
				workqueue.TypedQueueConfig[engine.Key]{Queue: newUrgencyQueue(a.urgency)})})})
	return a
}

// urgency returns the urgency of the open decision about a Workload, 0 if there is none.
func (wr *Writer) urgency(key engine.Key) int32 {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	if open := wr.open[key]; open != nil {
		return open.Urgency
	}
	return 0
}

// Withdraw drops an admission whose writing has not begun. The outcome of one that is being written, or was, is
// reported as usual.
func (wr *Writer) Withdraw(d engine.Decision) {
	wr.mu.Lock()
	open := wr.open[d.Key]
	is := open != nil && open.Serial == d.Serial && !open.attempted
	if is {
		wr.end(d.Key)
	}
	wr.mu.Unlock()
	if is {
		wr.report(engine.Failed{Key: d.Key, UID: d.UID, Serial: d.Serial})
	}
}

// Drop discards decisions that the engine no longer stands by, given by their serials. It reports no outcome.
func (wr *Writer) Drop(superseded map[engine.Key]int64) {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	for key, serial := range superseded {
		if open := wr.open[key]; open != nil && open.Serial == serial {
			wr.end(key)
		}
	}
}

// end removes the open decision of a Workload. The caller holds the lock.
func (wr *Writer) end(key engine.Key) {
	delete(wr.open, key)
	wr.Budget.setOpen(len(wr.open))
}

// Take queues a decision for writing. Under load it delays an eviction for the updates that are still on their way:
// the victim may have ended already.
func (wr *Writer) Take(d engine.Decision) {
	var lag time.Duration
	if d.Evict != nil {
		lag = wr.Budget.lag()
	}
	wr.mu.Lock()
	wr.open[d.Key] = &openDecision{Decision: d, notBefore: wr.clock.Now().Add(lag)}
	wr.Budget.setOpen(len(wr.open))
	wr.mu.Unlock()
	wr.queue.Forget(d.Key) // failures of an earlier decision about the Workload must not delay this one
	wr.queue.AddAfter(d.Key, lag)
}

// Run writes decisions until the context ends.
func (wr *Writer) Run(ctx context.Context) {
	Work(ctx, wr.queue, concurrentDecisions, wr.Write)
}

// Write makes one attempt to write the open decision of a Workload.
func (wr *Writer) Write(ctx context.Context, key engine.Key) {
	if ctx.Err() != nil {
		return // no write can succeed any more
	}
	open := wr.begin(key)
	switch {
	case open == nil:
		return
	case open.refusal != nil:
		wr.reportRefusal(key, open, open.refusal)
		return
	}
	// The first attempt relies on the cache; a retry must read what the cache may lack.
	var reader client.Reader = wr.client
	isRetry := wr.queue.NumRequeues(key) > 0
	if isRetry {
		reader = wr.live
	}
	outcome, version, err := wr.try(ctx, reader, open)
	wr.settle(ctx, key, open, isRetry, outcome, version, err)
}

// begin returns the open decision of a Workload, whose next attempt is now. It returns nil if there is none, or if that
// is not due yet: then it is queued for later.
func (wr *Writer) begin(key engine.Key) *openDecision {
	wr.mu.Lock()
	open := wr.open[key]
	var wait time.Duration
	if open != nil {
		wait = open.notBefore.Sub(wr.clock.Now())
		open.attempted = open.attempted || wait <= 0
	}
	wr.mu.Unlock() // before anything is added to the queue, which asks for its urgency under a lock of its own
	switch {
	case open == nil:
		wr.queue.Forget(key)
	case wait > 0: // the item was queued for an earlier decision that was being retried
		wr.queue.AddAfter(key, wait)
		return nil
	}
	return open
}

// settle acts on the outcome of an attempt to write a decision: it queues the next one, or ends the decision and
// reports its outcome to the engine. again is set if this was a retry.
func (wr *Writer) settle(ctx context.Context, key engine.Key, open *openDecision, isRetry bool, outcome result,
	version int64, err error) {
	d := open.Decision
	switch {
	case outcome == superseded && d.Admit == nil && d.Try == nil && !isRetry, outcome == alreadyThere && !isRetry:
		// The cache may lag behind the admission that is to be changed or revoked, or behind the last change of the
		// admission.
		wr.queue.AddRateLimited(key)
	case outcome == unknown:
		if !apierrors.IsConflict(err) {
			ctrl.LoggerFrom(ctx).Error(err, "writing a decision about a Workload; retrying", "workload", key.String())
		}
		wr.queue.AddRateLimited(key)
	case outcome == refused && (d.Admit != nil || d.Try != nil):
		wr.reportRefusal(key, open, err)
	case outcome == refused:
		ctrl.LoggerFrom(ctx).Error(err, "the API server refuses to evict, move or resize a Workload",
			"workload", key.String())
		open.refusal = err
		wr.queue.AddAfter(key, wr.denials.When(struct{}{}))
	case !wr.close(key, open): // the engine has made another decision since, or withdrawn this one
	case outcome == written && d.Try != nil:
		wr.report(engine.Tried{Key: key, UID: d.UID, Serial: d.Serial})
	case d.Try == nil && (outcome == written || outcome == alreadyThere):
		if d.Admit == nil {
			wr.denials.Forget(struct{}{})
		}
		wr.report(engine.Written{Key: key, UID: d.UID, Serial: d.Serial, Version: version})
	default: // superseded, finished, or a trial of what the Workload holds already
		wr.report(engine.Failed{Key: key, UID: d.UID, Serial: d.Serial})
	}
}

// reportRefusal reports the API server's refusal to the engine, unless the decision is no longer open.
func (wr *Writer) reportRefusal(key engine.Key, open *openDecision, err error) {
	if wr.close(key, open) {
		wr.report(engine.Refused{Key: key, UID: open.UID, Serial: open.Serial, Generation: open.Generation,
			Message: plain.Text(err.Error()), At: wr.clock.Now()})
	}
}

// close ends a decision and reports whether it did: not if a newer decision has replaced it, or it was dropped.
func (wr *Writer) close(key engine.Key, is *openDecision) bool {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	wr.queue.Forget(key)
	if wr.open[key] != is {
		return false
	}
	wr.end(key)
	return true
}

// Work runs n workers that process the queue until the context ends.
func Work[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], n int,
	do func(context.Context, K)) {
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			for {
				item, stopped := queue.Get()
				if stopped {
					return
				}
				do(ctx, item)
				queue.Done(item)
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	workers.Wait()
}

// PreemptedTotal counts preemptions that were written, by the queue that preempts.
var PreemptedTotal = metrics.NewCounter("kueue_preempted_workloads_total",
	"Preemptions, by the ClusterQueue of the Workload for which they were and the reason of the condition Preempted.", "preempting_cluster_queue", "reason")

// countPreemption counts a preemption that was written.
func countPreemption(e *engine.Eviction) {
	if cause, ok := causes[e.Cause]; ok && e.PreemptorPath != "" {
		PreemptedTotal.WithLabelValues(path.Base(e.PreemptorPath), cause.reason).Inc()
	}
}
