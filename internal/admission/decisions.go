package admission

import (
	"context"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// decisionsAtOnce is how many decisions are written side by side: as many as keep an API
	// server busy that answers in milliseconds. More would wait there rather than here, and keep
	// it from those who tell that their pods have ended, which is what others wait for.
	decisionsAtOnce = 8
	// longestRetry bounds the back-off after a failed write.
	longestRetry = 30 * time.Second
)

// decisionWriter writes admissions, changes of places and of sizes, and evictions, one conditional status write each, the
// most urgent first: the quota of whoever waits for his is used by nobody.
// While a write is open the engine assumes that it is done; how it went is told the
// engine, which decides anew if the Workload has changed or is gone. All other errors
// say nothing about whether the write took effect, so it looks, and tries again.
type decisionWriter struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	budget *writeBudget
	teller *teller
	tell   func(engine.Event)
	queue  workqueue.TypedRateLimitingInterface[engine.Key]
	// denials spaces out what the API server refuses one after the other about Workloads that have quota. The engine, which is told,
	// asks another of them: where none can be told anything, that is all there are.
	denials workqueue.TypedRateLimiter[struct{}]

	mu   sync.Mutex
	open map[engine.Key]*undertaking
}

// undertaking is a decision that is to be written.
type undertaking struct {
	engine.Decision
	// from is when the first write of it may be tried. begun tells that one was: it may take effect whatever comes of it.
	from  time.Time
	begun bool
	// refused is what the API server had against it, to be told when its turn comes again.
	refused error
	// unseen is the Workload on which a write was tried of which nobody knows whether it took effect, nil for none.
	unseen *kueue.Workload
}

func newDecisionWriter(c client.Client, live client.Reader, clock clock.PassiveClock, budget *writeBudget, tell func(engine.Event)) *decisionWriter {
	a := &decisionWriter{client: c, live: live, clock: clock, budget: budget, tell: tell, open: map[engine.Key]*undertaking{},
		denials: workqueue.NewTypedItemExponentialFailureRateLimiter[struct{}](5*time.Millisecond, longestRetry)}
	a.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[engine.Key](5*time.Millisecond, longestRetry),
		workqueue.TypedRateLimitingQueueConfig[engine.Key]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[engine.Key]{Queue: workqueue.NewTypedWithConfig(
				workqueue.TypedQueueConfig[engine.Key]{Queue: newUrgencyQueue(a.urgency)})})})
	return a
}

// urgency is that of the open decision about a Workload.
func (a *decisionWriter) urgency(key engine.Key) int32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if open := a.open[key]; open != nil {
		return open.Urgency
	}
	return 0
}

// withdraw gives up an admission that nobody has begun to write. How one goes that is being written, or
// that was, is told as ever.
func (a *decisionWriter) withdraw(d engine.Decision) {
	a.mu.Lock()
	open := a.open[d.Key]
	is := open != nil && open.Serial == d.Serial && !open.begun
	if is {
		a.end(d.Key)
	}
	a.mu.Unlock()
	if is {
		a.tell(engine.Failed{Key: d.Key, UID: d.UID, Serial: d.Serial})
	}
}

// drop gives up decisions that the engine does not stand by any more, by their serials. Nothing is told of them.
func (a *decisionWriter) drop(overtaken map[engine.Key]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, serial := range overtaken {
		if open := a.open[key]; open != nil && open.Serial == serial {
			a.end(key)
		}
	}
}

// end forgets the open decision of a Workload. The caller holds the lock.
func (a *decisionWriter) end(key engine.Key) {
	delete(a.open, key)
	a.budget.wants(len(a.open))
}

// take has the decision written. An eviction waits for news that are late: who is to go may
// have ended already.
func (a *decisionWriter) take(d engine.Decision) {
	var lag time.Duration
	if d.Evict != nil {
		lag = a.budget.lag()
	}
	a.mu.Lock()
	a.open[d.Key] = &undertaking{Decision: d, from: a.clock.Now().Add(lag)}
	a.budget.wants(len(a.open))
	a.mu.Unlock()
	a.queue.Forget(d.Key) // that an earlier decision about the Workload could not be written is nothing to this one
	a.queue.AddAfter(d.Key, lag)
}

func (a *decisionWriter) run(ctx context.Context) {
	work(ctx, a.queue, decisionsAtOnce, a.write)
}

// write tries once to write the open decision of a Workload.
func (a *decisionWriter) write(ctx context.Context, key engine.Key) {
	if ctx.Err() != nil {
		return // nothing could be written any more
	}
	a.mu.Lock()
	open := a.open[key]
	var rest time.Duration
	if open != nil {
		rest = open.from.Sub(a.clock.Now())
		open.begun = open.begun || rest <= 0
	}
	a.mu.Unlock()
	switch {
	case open == nil:
		a.queue.Forget(key)
		return
	case rest > 0: // its turn is from an earlier decision, which was tried again and again
		a.queue.AddAfter(key, rest)
		return
	}
	d := open.Decision
	if open.refused != nil {
		a.tellRefused(key, open, open.refused)
		return
	}
	// The first try trusts the cache; what it cannot know any more is asked for.
	var reader client.Reader = a.client
	again := a.queue.NumRequeues(key) > 0
	if again {
		reader = a.live
	}
	outcome, version, err := a.try(ctx, reader, open)
	switch {
	case outcome == overtaken && d.Admit == nil && !again:
		// The cache may not have the admission yet that is to be changed or taken back.
		a.queue.AddRateLimited(key)
	case outcome == unknown:
		if !apierrors.IsConflict(err) {
			ctrl.LoggerFrom(ctx).Error(err, "admitting or evicting a Workload; looking and trying again", "workload", key.String())
		}
		a.queue.AddRateLimited(key)
	case outcome == refused && d.Admit != nil:
		a.tellRefused(key, open, err)
	case outcome == refused:
		ctrl.LoggerFrom(ctx).Error(err, "the API server refuses to have a Workload evicted, moved or resized", "workload", key.String())
		open.refused = err
		a.queue.AddAfter(key, a.denials.When(struct{}{}))
	case !a.close(key, open): // the engine has decided anew since, or heard of something else
	case outcome == written:
		if d.Admit == nil {
			a.denials.Forget(struct{}{})
		}
		a.tell(engine.Written{Key: key, UID: d.UID, Serial: d.Serial, Version: version})
	case outcome == overtaken || outcome == over:
		a.tell(engine.Failed{Key: key, UID: d.UID, Serial: d.Serial})
	}
}

// tellRefused tells the engine what the API server has against its decision, if it stands by that yet.
func (a *decisionWriter) tellRefused(key engine.Key, open *undertaking, err error) {
	if a.close(key, open) {
		a.tell(engine.Refused{Key: key, UID: open.UID, Serial: open.Serial, Generation: open.Generation, Message: err.Error(), At: a.clock.Now()})
	}
}

// result of a try.
type result int

const (
	// written: the API server has the admission.
	written result = iota
	// overtaken: the Workload is gone, or is not the one that was decided on.
	overtaken
	// over: the Workload has finished, which nobody takes back.
	over
	// refused: the API server will not have it.
	refused
	// unknown: nobody can say before the next look.
	unknown
)

// try looks at the Workload and, if it is as decided on, writes the decision. The
// version is that of the Workload with it, if it was written.
func (a *decisionWriter) try(ctx context.Context, reader client.Reader, open *undertaking) (_ result, version int64, _ error) {
	var seen kueue.Workload
	d := open.Decision
	if err := reader.Get(ctx, objectKey(d.Key), &seen, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return overtaken, 0, nil
		}
		return unknown, 0, err
	}
	switch {
	case string(seen.UID) != d.UID:
		return overtaken, 0, nil
	case workload.IsFinished(&seen):
		return over, 0, nil
	}
	desired, outcome, err := a.desired(ctx, &seen, d)
	switch {
	case err != nil:
		return unknown, 0, err
	case desired == nil:
		return outcome, versionOf(&seen), nil
	case mayHaveGiven(open, &seen):
		return overtaken, 0, nil
	}
	a.budget.note()
	began := a.clock.Now()
	version, err = writeStatus(ctx, a.client, &seen, desired)
	a.budget.done(a.clock.Since(began))
	switch {
	case err == nil:
		a.teller.changed(&seen, desired)
		logChange(ctx, &seen, desired)
		if d.Evict != nil {
			countPreemption(d.Evict)
		}
		return written, version, nil
	case apierrors.IsNotFound(err):
		return overtaken, 0, nil
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err):
		return refused, 0, err
	case !apierrors.IsConflict(err):
		open.unseen = &seen
	}
	return unknown, 0, err
}

// desired is the Workload as the decision wants it, or nil if there is nothing to write, with what has become of the decision: it is
// written already, or overtaken.
func (a *decisionWriter) desired(ctx context.Context, seen *kueue.Workload, d engine.Decision) (*kueue.Workload, result, error) {
	switch {
	case d.Evict != nil:
		return a.evicted(ctx, seen, d.Evict)
	case d.Replace != nil:
		return a.replaced(ctx, seen, d.Replace)
	case d.Resize != nil:
		return a.resized(ctx, seen, d.Resize)
	}
	return a.admitted(ctx, seen, d)
}

// evicted is desired of an eviction.
func (a *decisionWriter) evicted(ctx context.Context, seen *kueue.Workload, e *engine.Eviction) (*kueue.Workload, result, error) {
	switch {
	case !workload.HoldsQuota(seen):
		return nil, overtaken, nil
	case workload.IsEvicted(seen):
		return nil, written, nil
	}
	if wanted, err := a.stillWanted(ctx, e.Preemptor, e.PreemptorUID); err != nil || !wanted {
		return nil, overtaken, err
	}
	out := seen.DeepCopy()
	evict(out, e, a.jobUID(ctx, e.Preemptor), a.clock.Now())
	return out, unknown, nil
}

// replaced is desired of other places.
func (a *decisionWriter) replaced(ctx context.Context, seen *kueue.Workload, given *engine.Admission) (*kueue.Workload, result, error) {
	if !holdsIn(seen, given.ClusterQueue) {
		return nil, overtaken, nil
	}
	places, known, err := a.places(ctx, given)
	if err != nil || !known {
		return nil, overtaken, err
	}
	out := seen.DeepCopy()
	if !replace(out, places) {
		return nil, written, nil
	}
	return out, unknown, nil
}

// admitted is desired of an admission.
func (a *decisionWriter) admitted(ctx context.Context, seen *kueue.Workload, d engine.Decision) (*kueue.Workload, result, error) {
	switch {
	case workload.HoldsQuota(seen):
		// An earlier try was written, or somebody else was quicker. The watch says what it
		// holds; until then what was assumed stands in for that.
		return nil, written, nil
	case seen.Generation != d.Generation || !mayBeAdmitted(seen):
		return nil, overtaken, nil
	}
	places, known, err := a.places(ctx, d.Admit)
	if err != nil || !known {
		return nil, overtaken, err
	}
	out := new(*seen)
	out.Status = *seen.Status.DeepCopy() // all that an admission changes
	admit(out, d.Admit, places, a.clock.Now())
	if open, err := a.stillOpen(ctx, out, d.Admit); err != nil || !open {
		return nil, overtaken, err
	}
	return out, unknown, nil
}

// holdsIn reports whether the Workload holds quota of the ClusterQueue, and was not told to give it back.
func holdsIn(w *kueue.Workload, clusterQueue string) bool {
	return workload.HoldsQuota(w) && !workload.IsEvicted(w) && string(w.Status.Admission.ClusterQueue) == clusterQueue
}

// nameOf is what people know a Workload by: the job that controls it, as ns/trainingjob/tune, or
// itself; "" for none.
func (a *decisionWriter) nameOf(ctx context.Context, key engine.Key) string {
	if key == (engine.Key{}) {
		return ""
	}
	var w kueue.Workload
	if err := a.client.Get(ctx, objectKey(key), &w, client.UnsafeDisableDeepCopy); err == nil {
		if owner := metav1.GetControllerOfNoCopy(&w); owner != nil {
			return key.Namespace + "/" + strings.ToLower(owner.Kind) + "/" + owner.Name
		}
	}
	return key.Namespace + "/workload/" + key.Name
}

// places are those of an admission as the API has them; known tells that all they are named by is still there.
func (a *decisionWriter) places(ctx context.Context, given *engine.Admission) (_ map[string]*kueue.TopologyAssignment, known bool, _ error) {
	return placeReader{a.client}.assignments(ctx, given)
}

// jobUID is that of the job that a Workload is for, "" where it is for none.
func (a *decisionWriter) jobUID(ctx context.Context, key engine.Key) string {
	var w kueue.Workload
	if err := a.client.Get(ctx, objectKey(key), &w, client.UnsafeDisableDeepCopy); err != nil {
		return "" // it is for people only, and the preemptor may be gone by now
	}
	return w.Labels[kueue.JobUIDLabel]
}

// close ends a decision, and reports whether it did: not if a newer one has taken its
// place, or it was dropped.
func (a *decisionWriter) close(key engine.Key, is *undertaking) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue.Forget(key)
	if a.open[key] != is {
		return false
	}
	a.end(key)
	return true
}

// work has n workers do the items of the queue until the context ends.
func work[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], n int, do func(context.Context, K)) {
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
