package report

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/engine"
)

// pace runs the writer with a fake clock and records the times of its writes.
type pace struct {
	*QueueStatusWriter
	world *admissiontest.World
	clock *clocktesting.FakeClock
	times []time.Time
	stop  func()
}

func newPace(t *testing.T) *pace {
	p := &pace{world: admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "2"), admissiontest.NewFlavor("f")),
		clock: clocktesting.NewFakeClock(admissiontest.Now)}
	p.QueueStatusWriter = NewQueueStatusWriter(p.world, p.clock, decisions.NewWriteBudget(p.clock),
		admissiontest.QueueStatusInterval)
	observeQueues(p.QueueStatusWriter, admissiontest.NewClusterQueue("cq", "2"))
	p.world.Notify = func(_, _ client.Object) { p.times = append(p.times, p.clock.Now()) }
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { p.Run(ctx) })
	p.stop = func() { cancel(); done.Wait() }
	t.Cleanup(p.stop)
	return p
}

func (p *pace) pending(n int) {
	p.Note(StatusOf{OfClusterQueue, engine.Key{Name: "cq"}}, engine.Usage{Pending: n})
}

// awaitPending waits for the status, without advancing the clock.
func (p *pace) awaitPending(n int) {
	p.world.T.Helper()
	p.world.Await("the status is written", func() bool { return p.says(n) })
}

// awaitLater waits for the status, and advances the clock.
func (p *pace) awaitLater(n int) {
	p.world.T.Helper()
	timeout := time.After(admissiontest.Never)
	for !p.says(n) {
		p.clock.Step(admissiontest.QueueStatusInterval / 10)
		select {
		case <-p.world.Wrote:
		case <-time.After(time.Millisecond): // real time, for the writer to react
		case <-timeout:
			p.world.T.Fatalf("timed out waiting until %d workloads are pending; writes at %v", n, p.times)
		}
	}
}

func (p *pace) says(n int) bool {
	var q kueue.ClusterQueue
	return p.world.Get(context.Background(), client.ObjectKey{Name: "cq"}, &q) == nil &&
		int(q.Status.PendingWorkloads) == n
}

// TestAClockSetBackDelaysNoStatus: the time of the last write lies ahead then.
func TestAClockSetBackDelaysNoStatus(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "2"), admissiontest.NewFlavor("f"))
	clock := clocktesting.NewFakeClock(admissiontest.Now)
	s := NewQueueStatusWriter(w, clock, decisions.NewWriteBudget(clock), admissiontest.QueueStatusInterval)
	observeQueues(s, admissiontest.NewClusterQueue("cq", "2"))
	of := StatusOf{OfClusterQueue, engine.Key{Name: "cq"}}
	for _, pending := range []int{1, 2} {
		s.Note(of, engine.Usage{Pending: pending})
		if s.queue.Len() != 1 {
			t.Fatalf("%d writes are due, want that of the queue at once", s.queue.Len())
		}
		s.queue.Get()
		s.queue.Done(of)
		s.Write(t.Context(), of)
		var q kueue.ClusterQueue
		if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &q); err != nil {
			t.Fatal(err)
		}
		if got := int(q.Status.PendingWorkloads); got != pending {
			t.Errorf("%d workloads are pending, want %d", got, pending)
		}
		clock.SetTime(clock.Now().Add(-time.Hour))
	}
}

func TestAnIdleQueueIsWrittenAtOnceAndABusyOneRarely(t *testing.T) {
	p := newPace(t)
	p.pending(1)
	p.awaitPending(1) // without advancing the clock
	for i := range 12 {
		p.clock.Step(time.Second / 2)
		p.pending(2 + i)
	}
	p.awaitLater(13)
	p.clock.Step(time.Hour)
	p.pending(99)
	p.awaitLater(99)
	p.stop()
	for i := 1; i < len(p.times); i++ {
		if between := p.times[i].Sub(p.times[i-1]); between < admissiontest.QueueStatusInterval {
			t.Errorf("wrote %v after the last write, want at least the interval", between)
		}
	}
	if len(p.times) > 4 {
		t.Errorf("wrote %d times, want at most 4", len(p.times))
	}
}

// TestUpdatesDuringAWriteWaitForTheInterval: usage noted before the first write has ended does not count as that of an
// idle queue.
func TestUpdatesDuringAWriteWaitForTheInterval(t *testing.T) {
	p := newPace(t)
	var second sync.Once
	p.world.Before = func(string) error {
		second.Do(func() { p.pending(2) })
		return nil
	}
	p.pending(1)
	p.awaitPending(1)
	p.awaitLater(2)
	p.stop()
	if len(p.times) != 2 || p.times[1].Sub(p.times[0]) < admissiontest.QueueStatusInterval {
		t.Errorf("writes at %v, want two with the interval between", p.times)
	}
}

// TestActiveIsWrittenAtOnce: whether a queue admits is written at once when it changes, even right after another write.
// The numbers wait for the interval if nothing else has changed.
func TestActiveIsWrittenAtOnce(t *testing.T) {
	cluster, local := StatusOf{Key: engine.Key{Name: "cq"}}, StatusOf{OfLocalQueue, engine.Key{Namespace: "ns", Name: "q"}}
	for name, tc := range map[string]struct {
		change func(ctx context.Context, w *admissiontest.World) error
		usage  engine.Usage
		want   string
	}{
		"its cohorts form a cycle": {func(context.Context, *admissiontest.World) error { return nil },
			engine.Usage{Cyclic: true, Pending: 2}, "CohortCycleDetected"},
		"its flavor is gone": {func(ctx context.Context, w *admissiontest.World) error {
			return w.Delete(ctx, admissiontest.NewFlavor("f"))
		},
			engine.Usage{Pending: 2}, kueue.ClusterQueueActiveReasonFlavorNotFound},
		"nothing": {func(context.Context, *admissiontest.World) error { return nil }, engine.Usage{Pending: 2}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "2"), admissiontest.NewLocalQueue("q", "cq"),
				admissiontest.NewFlavor("f"))
			clock := clocktesting.NewFakeClock(admissiontest.Now)
			s := NewQueueStatusWriter(w, clock, decisions.NewWriteBudget(clock), admissiontest.QueueStatusInterval)
			observeQueues(s, admissiontest.NewClusterQueue("cq", "2"), admissiontest.NewLocalQueue("q", "cq"))
			write := func(u engine.Usage) {
				s.Note(StatusOf{OfClusterQueue, engine.Key{Name: "cq"}}, u)
				s.Note(StatusOf{OfLocalQueue, local.Key}, u)
				s.Write(t.Context(), cluster)
				s.Write(t.Context(), local)
			}
			read := func() (kueue.ClusterQueue, kueue.LocalQueue) {
				var q kueue.ClusterQueue
				var l kueue.LocalQueue
				if err := errors.Join(w.Get(t.Context(), client.ObjectKey(cluster.Key), &q),
					w.Get(t.Context(), client.ObjectKey(local.Key), &l)); err != nil {
					t.Fatal(err)
				}
				return q, l
			}
			write(engine.Usage{Pending: 1})
			if err := tc.change(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			s.Hasten(sets.New(cluster.Key, local.Key))
			write(tc.usage)
			q, l := read()
			if tc.want == "" {
				if q.Status.PendingWorkloads != 1 || l.Status.PendingWorkloads != 1 {
					t.Errorf("pending = %d and %d, want 1 of both before the interval is over", q.Status.PendingWorkloads,
						l.Status.PendingWorkloads)
				}
				clock.Step(admissiontest.QueueStatusInterval)
				s.Write(t.Context(), cluster)
				if q, _ := read(); q.Status.PendingWorkloads != 2 {
					t.Errorf("pending = %d, want 2 after the interval", q.Status.PendingWorkloads)
				}
				return
			}
			if got := q.Status.Conditions[0]; got.Status != metav1.ConditionFalse || got.Reason != tc.want {
				t.Errorf("ClusterQueue: Active=%s %s, want False %s", got.Status, got.Reason, tc.want)
			}
			if got := l.Status.Conditions[0]; got.Status != metav1.ConditionFalse ||
				got.Reason != kueue.LocalQueueActiveReasonClusterQueueIsInactive {
				t.Errorf("LocalQueue: Active=%s %s, want False", got.Status, got.Reason)
			}
		})
	}
}

// TestAFailedStatusWriteIsRetried: the retry does not overwrite newer numbers, noted after the failure or before it.
func TestAFailedStatusWriteIsRetried(t *testing.T) {
	for name, during := range map[string]bool{"newer numbers come after the write": false, "while it is under way": true} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "2"), admissiontest.NewFlavor("f"))
			s := NewQueueStatusWriter(w, clocktesting.NewFakeClock(admissiontest.Now),
				decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)), admissiontest.QueueStatusInterval)
			note := func(n int) { s.Note(StatusOf{OfClusterQueue, engine.Key{Name: "cq"}}, engine.Usage{Pending: n}) }
			fail := admissiontest.Once(apierrors.NewServiceUnavailable("overloaded"))
			w.Before = func(write string) error {
				err := fail(write)
				if err != nil && during {
					note(2)
				}
				return err
			}
			key := StatusOf{Key: engine.Key{Name: "cq"}}
			observeQueues(s, admissiontest.NewClusterQueue("cq", "2"))
			note(1)
			s.Write(t.Context(), key)
			if !during {
				note(2)
			}
			s.Write(t.Context(), key)
			s.Write(t.Context(), key)
			var q kueue.ClusterQueue
			if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &q); err != nil || q.Status.PendingWorkloads != 2 ||
				len(w.Written()) != 1 {
				t.Errorf("status = %+v, %v, writes = %v, want 2 pending by one write", q.Status, err, w.Written())
			}
		})
	}
}

func TestNothingIsKeptOfADeletedQueue(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewLocalQueue("gone", "cq"))
	s := NewQueueStatusWriter(w, clocktesting.NewFakeClock(admissiontest.Now),
		decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)), admissiontest.QueueStatusInterval)
	gone := StatusOf{OfLocalQueue, engine.Key{Namespace: "ns", Name: "gone"}}
	observeQueues(s, admissiontest.NewLocalQueue("gone", "cq"))
	s.Note(StatusOf{OfLocalQueue, gone.Key}, engine.Usage{Pending: 1})
	s.Write(t.Context(), gone)
	if len(s.wrote) != 1 {
		t.Fatalf("written statuses = %v, want one", s.wrote)
	}
	s.Note(StatusOf{OfLocalQueue, gone.Key}, engine.Usage{Pending: 2})
	s.Forget(gone)
	if len(s.wrote) != 0 || len(s.usage) != 0 {
		t.Errorf("state of the deleted queue = %v, %v, want none", s.wrote, s.usage)
	}
}
