package admission

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
)

const (
	// admissionsAtOnce is how many admissions are written side by side.
	admissionsAtOnce = 32
	// longestRetry bounds the back-off after a failed write.
	longestRetry = 30 * time.Second
)

// admitter writes admissions, one conditional status write each. While a write is
// open the engine holds the quota for it; how it went is told the engine, which
// decides anew if the Workload has changed or is gone. All other errors say nothing
// about whether the write took effect, so it looks, and tries again.
type admitter struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	tell   func(engine.Event)
	queue  workqueue.TypedRateLimitingInterface[engine.Key]

	mu   sync.Mutex
	open map[engine.Key]engine.Decision
}

func newAdmitter(c client.Client, live client.Reader, clock clock.PassiveClock, tell func(engine.Event)) *admitter {
	return &admitter{
		client: c, live: live, clock: clock, tell: tell,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[engine.Key](5*time.Millisecond, longestRetry)),
		open: map[engine.Key]engine.Decision{},
	}
}

// admit has the decision written.
func (a *admitter) admit(d engine.Decision) {
	a.mu.Lock()
	a.open[d.Key] = d
	a.mu.Unlock()
	a.queue.Add(d.Key)
}

func (a *admitter) run(ctx context.Context) {
	work(ctx, a.queue, admissionsAtOnce, a.write)
}

// write tries once to write the open decision of a Workload.
func (a *admitter) write(ctx context.Context, key engine.Key) {
	a.mu.Lock()
	d, ok := a.open[key]
	a.mu.Unlock()
	if !ok {
		return
	}
	// The first try trusts the cache; what it cannot know any more is asked for.
	var reader client.Reader = a.client
	if a.queue.NumRequeues(key) > 0 {
		reader = a.live
	}
	switch outcome, version, err := a.try(ctx, reader, d); outcome {
	case written:
		a.close(key, d)
		a.tell(engine.AdmissionWritten{Key: key, UID: d.UID, Version: version})
	case overtaken:
		a.close(key, d)
		a.tell(engine.AdmissionFailed{Key: key, UID: d.UID})
	case refused:
		a.close(key, d)
		a.tell(engine.AdmissionRefused{Key: key, UID: d.UID, Generation: d.Generation, Message: err.Error()})
	case unknown:
		if !apierrors.IsConflict(err) {
			ctrl.LoggerFrom(ctx).Error(err, "admitting a Workload; looking and trying again", "workload", key.String())
		}
		a.queue.AddRateLimited(key)
	}
}

// result of a try.
type result int

const (
	// written: the API server has the admission.
	written result = iota
	// overtaken: the Workload is gone, or is not the one that was decided on.
	overtaken
	// refused: the API server will not have it.
	refused
	// unknown: nobody can say before the next look.
	unknown
)

// try looks at the Workload and, if it is as decided on, writes the admission. The
// version is that of the Workload with it, if it was written.
func (a *admitter) try(ctx context.Context, reader client.Reader, d engine.Decision) (_ result, version int64, _ error) {
	var seen kueue.Workload
	if err := reader.Get(ctx, objectKey(d.Key), &seen); err != nil {
		if apierrors.IsNotFound(err) {
			return overtaken, 0, nil
		}
		return unknown, 0, err
	}
	switch now := changed(&seen).(type) {
	case engine.WorkloadGone:
		return overtaken, 0, nil
	case engine.WorkloadSet:
		switch {
		case now.Admission.Equal(d.Admit):
			return written, now.Version, nil
		case now.UID != d.UID || now.Generation != d.Generation || now.Inactive || now.Admission != nil || now.Refused != "":
			return overtaken, 0, nil
		}
	}
	admitted := seen.DeepCopy()
	admit(admitted, d.Admit, a.clock.Now())
	err := a.client.Status().Patch(ctx, admitted, client.MergeFromWithOptions(&seen, client.MergeFromWithOptimisticLock{}),
		client.DisableReadYourWritesConsistency)
	switch {
	case err == nil:
		return written, versionOf(admitted), nil
	case apierrors.IsNotFound(err):
		return overtaken, 0, nil
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err):
		return refused, 0, err
	}
	return unknown, 0, err
}

// close ends a decision, unless a newer one has taken its place.
func (a *admitter) close(key engine.Key, d engine.Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[key].Admit == d.Admit {
		delete(a.open, key)
	}
	a.queue.Forget(key)
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
