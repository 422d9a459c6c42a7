package admission

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
)

// watched are the kinds that the engine hears of.
var watched = []client.Object{
	&corev1.Namespace{}, &kueue.ResourceFlavor{}, &kueue.Cohort{}, &kueue.ClusterQueue{}, &kueue.LocalQueue{}, &kueue.Workload{},
}

// loop feeds the engine and passes its decisions on. It runs on the leader only:
// there, it begins with everything that the API server has, and decides nothing
// before it has seen all of it.
type loop struct {
	mgr      ctrl.Manager
	engine   *engine.Engine
	mailbox  *mailbox
	admitter *admitter
	pending  *pendingWriter
	queues   *queueStatusWriter
	clock    clock.PassiveClock
	config   *config.Configuration
}

// AddTo has the manager admit Workloads. The configuration is a complete one, as
// package internal/config gives it, and is not changed afterwards.
func AddTo(mgr ctrl.Manager, cfg *config.Configuration) error {
	box := newMailbox()
	l := &loop{
		mgr:      mgr,
		engine:   engine.New(),
		mailbox:  box,
		admitter: newAdmitter(mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{}, box.put),
		pending:  newPendingWriter(mgr.GetClient(), clock.RealClock{}),
		queues:   newQueueStatusWriter(mgr.GetClient(), clock.RealClock{}, cfg.QueueStatus.Interval.Duration),
		clock:    clock.RealClock{},
		config:   cfg,
	}
	if err := mgr.Add(l); err != nil {
		return fmt.Errorf("adding the admission loop: %w", err)
	}
	return addDefaultQueue(mgr)
}

// NeedLeaderElection is for the manager: who does not lead does not decide.
func (l *loop) NeedLeaderElection() bool { return true }

// Start runs until the context ends.
func (l *loop) Start(ctx context.Context) error {
	synced, err := l.observe(ctx)
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // asked to stop before it began
	}
	var background sync.WaitGroup
	for _, run := range []func(context.Context){l.admitter.run, l.pending.run, l.queues.run} {
		background.Go(func() { run(ctx) })
	}
	defer background.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.mailbox.wake:
			l.turn()
		}
	}
}

// turn takes in what arrived and passes on what follows.
func (l *loop) turn() {
	for _, event := range l.mailbox.take() {
		l.engine.Apply(event)
	}
	for _, d := range l.engine.Decide(l.clock.Now()) {
		if d.Admit != nil {
			l.pending.forget(d.Key)
			l.admitter.admit(d)
		} else {
			l.pending.say(d)
		}
	}
	clusterQueues, localQueues := l.engine.TakeTouched()
	for _, name := range clusterQueues {
		if usage, ok := l.engine.QueueUsage(name); ok {
			l.queues.noteClusterQueue(name, usage)
		}
	}
	for _, key := range localQueues {
		if usage, ok := l.engine.LocalQueueUsage(key); ok {
			l.queues.noteLocalQueue(key, usage)
		}
	}
}

// observe has the mailbox filled by the manager's watches.
func (l *loop) observe(ctx context.Context) ([]toolscache.InformerSynced, error) {
	var synced []toolscache.InformerSynced
	for _, kind := range watched {
		informer, err := l.mgr.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { l.mailbox.put(changed(o.(client.Object))) },
			UpdateFunc: func(before, after any) {
				if concerns(before.(client.Object), after.(client.Object)) {
					l.mailbox.put(changed(after.(client.Object)))
				}
			},
			DeleteFunc: func(o any) {
				if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
					o = last.Obj
				}
				l.mailbox.put(deleted(o.(client.Object)))
			},
		})
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, nil
}

// concerns reports whether a change is any to the engine: of what configures it,
// only the spec counts, and most changes are statuses that were written here.
func concerns(before, after client.Object) bool {
	switch after.(type) {
	case *kueue.ResourceFlavor, *kueue.Cohort, *kueue.ClusterQueue, *kueue.LocalQueue:
		return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID()
	}
	return true
}

// mailbox holds events until the loop takes them. Putting never blocks: watches
// must not wait for decisions.
type mailbox struct {
	mu     sync.Mutex
	events []engine.Event
	wake   chan struct{}
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) put(event engine.Event) {
	m.mu.Lock()
	m.events = append(m.events, event)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // the loop will come anyway
	}
}

func (m *mailbox) take() []engine.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	events := m.events
	m.events = nil
	return events
}
