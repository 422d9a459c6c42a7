package report

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/internal/workload"
)

// concurrentReasons is how many reasons are written concurrently: enough for some hundred within a second, and few
// enough to leave the API server capacity for other clients.
const concurrentReasons = 4

// PendingWriter writes into the status of Workloads why they wait. It writes only the latest reason: a reason that was
// superseded before its turn costs nothing.
type PendingWriter struct {
	client client.Client
	clock  clock.PassiveClock
	budget *decisions.WriteBudget
	Events *decisions.JobEvents
	Queue  workqueue.TypedRateLimitingInterface[engine.Key]

	mu      sync.Mutex
	reasons map[engine.Key]waitReason
}

type waitReason struct {
	uid string
	why reason.Reason
}

// NewPendingWriter returns a writer to which nothing was noted yet.
func NewPendingWriter(c client.Client, clock clock.PassiveClock, budget *decisions.WriteBudget) *PendingWriter {
	return &PendingWriter{
		client: c, clock: clock, budget: budget,
		Queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[engine.Key](100*time.Millisecond, decisions.LongestRetry)),
		reasons: map[engine.Key]waitReason{},
	}
}

// Note queues the reason of the decision for writing.
func (p *PendingWriter) Note(d engine.Decision) {
	p.mu.Lock()
	p.reasons[d.Key] = waitReason{uid: d.UID, why: d.Why}
	p.mu.Unlock()
	p.Queue.Add(d.Key)
}

// Forget drops the reason that was not written yet.
func (p *PendingWriter) Forget(key engine.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.reasons, key)
}

// Run writes reasons until the context ends.
func (p *PendingWriter) Run(ctx context.Context) {
	decisions.Work(ctx, p.Queue, concurrentReasons, p.Write)
}

// Write writes the newest reason of a Workload, if it still waits.
func (p *PendingWriter) Write(ctx context.Context, key engine.Key) {
	if _, ok := p.reasonFor(key); ok && p.budget.WaitForReason(ctx) != nil {
		return // the context ended
	}
	last, ok := p.reasonFor(key)
	if !ok {
		p.Queue.Forget(key) // the Workload does not wait any more
		return
	}
	err := p.try(ctx, key, last)
	if refusal.Is(err) {
		// No later attempt would succeed either. An event on the job has told the reason.
		ctrl.LoggerFrom(ctx).Error(err, "the API server refuses to store why a Workload waits", "workload", key.String(),
			"reason", last.why.Message())
		err = nil
	}
	if err != nil {
		// Usually a conflict with an admission, or with a write of the Workload's owner.
		ctrl.LoggerFrom(ctx).V(1).Info("retrying to write why a Workload waits", "workload", key.String(),
			"cause", err.Error())
		p.Queue.AddRateLimited(key)
		return
	}
	p.Queue.Forget(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.reasons[key]; now.uid == last.uid && now.why.Equal(last.why) {
		delete(p.reasons, key)
	}
}

// reasonFor returns the reason that is to be written for a Workload.
func (p *PendingWriter) reasonFor(key engine.Key) (waitReason, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.reasons[key]
	return last, ok
}

func (p *PendingWriter) try(ctx context.Context, key engine.Key, last waitReason) error {
	var seen kueue.Workload
	if err := p.client.Get(ctx, client.ObjectKey(key), &seen, client.DisableReadYourWritesConsistency,
		client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err)
	}
	if string(seen.UID) != last.uid || workload.HoldsQuota(&seen) || workload.IsFinished(&seen) {
		return nil
	}
	waiting := seen.DeepCopy()
	decisions.Wait(waiting, last.why, p.clock.Now())
	if equality.Semantic.DeepEqual(seen.Status, waiting.Status) {
		return nil
	}
	_, err := decisions.WriteStatus(ctx, p.client, &seen, waiting)
	if refusal.Is(err) || err == nil && reportsRefusal(waiting) && !reportsRefusal(&seen) {
		p.Events.Waits(&seen, last.why)
	}
	return err
}

// reportsRefusal reports whether the status says that the API server refuses the admission. Users who look at their job
// alone are told so by one event, since they can mend it: no other workload's end will.
func reportsRefusal(w *kueue.Workload) bool {
	code, message := translate.PendingReason(w)
	return code == reason.Inadmissible && reason.IsRefusedAdmission(message)
}
