package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/managedqueues"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// watched are the kinds whose changes the engine is told about.
var watched = []client.Object{
	&corev1.Namespace{}, &corev1.LimitRange{}, &nodev1.RuntimeClass{}, &kueue.AdmissionCheck{},
	&kueue.ResourceFlavor{}, &kueue.Cohort{}, &kueue.ClusterQueue{}, &kueue.LocalQueue{}, &kueue.Workload{},
	&kueue.Topology{}, &corev1.Node{}, &corev1.Pod{},
}

// loop feeds watch events to the engine and passes its decisions to the writers. It runs on the leader only. It
// starts with everything that the API server has, and decides nothing before the caches have synced.
type loop struct {
	mgr        ctrl.Manager
	engine     *engine.Engine
	translator *translator
	mailbox    *mailbox
	decisions  *decisionWriter
	pending    *pendingWriter
	queues     *queueStatusWriter
	log        *decisionLog // nil for none
	binds      *bindTimes
	gauges     *queueGauges
	stall      *stall
	auditor    *auditor
	clock      clock.Clock
	// timer fires at due, when the engine, the translator or the auditor has something to do; alarm is its channel.
	// Both are nil while nothing is due.
	timer clock.Timer
	alarm <-chan time.Time
	due   time.Time
}

// Background is for writers of information that only users read, which must yield to writes that jobs depend on.
type Background struct {
	// Busy reports whether the API server is overloaded.
	Busy func() bool
	// Recorder records events within the write budget.
	Recorder events.EventRecorder
}

// AddTo adds the admission of Workloads to the manager. The configuration must be complete, as package
// internal/config returns it, and must not be changed afterwards. decisionLog names the file that records every event
// and decision of the engine, "" for none.
func AddTo(mgr ctrl.Manager, cfg *config.Configuration, decisionLog string) (*Background, error) {
	for _, kind := range watched {
		// Replicas that do not lead fill the caches as well, so that they can take over at once.
		if _, err := mgr.GetCache().GetInformer(context.Background(), kind); err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	loop := newLoop(mgr, cfg)
	if decisionLog != "" {
		log, err := openDecisionLog(decisionLog, engineOptions(cfg))
		if err != nil {
			return nil, err
		}
		loop.log = log
	}
	budget := loop.decisions.budget
	recorder := newBoundedRecorder(mgr.GetEventRecorder("muster"), budget)
	background := &Background{Busy: func() bool { return !budget.quiet() }, Recorder: recorder}
	events := &jobEvents{recorder}
	loop.decisions.events, loop.pending.events = events, events
	if err := errors.Join(mgr.Add(loop), mgr.Add(recorder)); err != nil {
		return nil, fmt.Errorf("adding the admission loop and the event recorder: %w", err)
	}
	if err := addWorkloads(mgr, lifecyclePolicy(cfg), events); err != nil {
		return nil, err
	}
	if err := addFinalizers(mgr, recorder); err != nil {
		return nil, err
	}
	if err := managedqueues.AddMadeLocalQueues(mgr); err != nil {
		return nil, err
	}
	return background, managedqueues.AddDefault(mgr, cfg.DefaultQueue)
}

func newLoop(mgr ctrl.Manager, cfg *config.Configuration) *loop {
	box, real := newMailbox(), clock.RealClock{}
	budget := newWriteBudget(real)
	report := func(ev engine.Event) { box.put(message{event: ev}) }
	out := &loop{
		mgr:        mgr,
		engine:     engine.New(engineOptions(cfg)),
		translator: newTranslator(countingOf(cfg.Resources), queuePolicyOf(cfg), cfg.NodeFailure.NotReadyGrace.Duration),
		mailbox:    box,
		decisions:  newDecisionWriter(mgr.GetClient(), mgr.GetAPIReader(), real, budget, report),
		pending:    newPendingWriter(mgr.GetClient(), real, budget),
		queues:     newQueueStatusWriter(mgr.GetClient(), real, budget, cfg.QueueStatus.Interval.Duration),
		binds:      newBindTimes(func(took time.Duration) { bindSeconds.Observe(took.Seconds()) }),
		gauges:     served,
		stall:      servedStall,
		auditor:    &auditor{cache: mgr.GetCache(), every: auditEvery},
		clock:      real,
	}
	out.queues.gauges, out.translator.pods.filled = out.gauges, out.engine.Filled
	out.queues.unshared = unshared{byShare: cfg.FairSharing == nil, byUsage: cfg.AdmissionFairSharing == nil}
	return out
}

// engineOptions returns the options of the engine under the configuration.
func engineOptions(cfg *config.Configuration) engine.Options {
	out := engine.Options{
		IgnoreUndeclared:     *cfg.Resources.QuotaCheckStrategy == config.IgnoreUndeclared,
		FairSharing:          fairSharingOf(cfg.FairSharing),
		AdmissionFairSharing: admissionFairSharingOf(cfg.AdmissionFairSharing),
		Elastic:              elastic.Policy{GrowAfter: cfg.Elasticity.GrowAfter.Duration, ResizeCost: cfg.Elasticity.ResizeCost.Duration},
	}
	if *cfg.WaitForPodsReady.Enable {
		out.BlockUntilReady = map[config.BlockAdmission]engine.Block{
			config.BlockQueue: engine.BlockQueue, config.BlockAll: engine.BlockAll,
		}[*cfg.WaitForPodsReady.BlockAdmission]
	}
	return out
}

func queuePolicyOf(cfg *config.Configuration) queuePolicy {
	return queuePolicy{requeueByEviction: *cfg.WaitForPodsReady.RequeuingStrategy.Timestamp == config.EvictionTimestamp}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader decides.
func (l *loop) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it runs until the context ends.
func (l *loop) Start(ctx context.Context) error {
	synced, err := l.observe(ctx)
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // stopped before the caches synced
	}
	var background sync.WaitGroup
	for _, run := range []func(context.Context){l.decisions.run, l.pending.run, l.queues.run} {
		background.Go(func() { run(ctx) })
	}
	defer background.Wait()
	defer l.log.close()
	ctrl.LoggerFrom(ctx).Info("caches are synced: starting to decide", "objects", l.mailbox.len())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.mailbox.wake:
		case <-l.alarm:
			l.due = time.Time{} // forces a new timer even for the same time: the clock may have been set back
		}
		l.turn()
		l.audit(ctx)
		l.setAlarm()
	}
}

// setAlarm sets the timer for the next time that there is something to do without a new event.
func (l *loop) setAlarm() {
	due := sooner(sooner(l.engine.Due(), l.translator.due()), l.auditor.due())
	if due.Equal(l.due) {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.due, l.timer, l.alarm = due, nil, nil
	if !due.IsZero() {
		l.timer = l.clock.NewTimer(due.Sub(l.clock.Now()))
		l.alarm = l.timer.C()
	}
}

// turn processes everything in the mailbox, decides, and passes the decisions to the writers.
func (l *loop) turn() {
	received := l.clock.Now()
	for _, n := range l.mailbox.take() {
		l.apply(n.engineEvents(l.translator, received), received)
		l.queues.observe(n)
	}
	l.apply(l.translator.overdue(received), received)
	l.decisions.drop(l.engine.TakeSuperseded()) // before their quota can be given to other workloads
	began := l.clock.Now()
	l.stall.begin(began)
	decisions := l.engine.Decide(began)
	l.stall.end(len(decisions), l.engine.Busy())
	took := l.clock.Since(began)
	passSeconds.Observe(took.Seconds())
	countAttempt(decisions, took)
	l.log.recordPass(began, decisions)
	if l.engine.Busy() {
		l.mailbox.wakeUp() // comes back for the rest, after what has arrived meanwhile
	}
	for _, d := range decisions {
		l.count(d, began)
		switch {
		case d.Withdraw:
			l.decisions.withdraw(d)
		case d.Try != nil:
			l.decisions.take(d) // its reason to wait is written meanwhile
		case d.Admit != nil || d.Replace != nil || d.Resize != nil || d.Evict != nil:
			l.pending.forget(d.Key)
			l.decisions.take(d)
		default:
			l.pending.note(d)
		}
	}
	l.updateQueues()
}

// apply applies events to the engine.
func (l *loop) apply(events []engine.Event, now time.Time) {
	for _, event := range events {
		l.log.recordEvent(event)
		l.binds.apply(event, now)
		l.gauges.apply(event)
		l.engine.Apply(event)
	}
}

// count updates the metrics for a decision.
func (l *loop) count(d engine.Decision, now time.Time) {
	switch {
	case d.Admit != nil:
		decisionsTotal.WithLabelValues("admit").Inc()
		l.binds.admitted(d.Key, d.Admit, now)
	case d.Try != nil:
		decisionsTotal.WithLabelValues("try").Inc()
	case d.Replace != nil:
		decisionsTotal.WithLabelValues("replace").Inc()
		repairsTotal.WithLabelValues("replaced").Inc()
	case d.Resize != nil:
		decisionsTotal.WithLabelValues("resize").Inc()
		if d.Resize.Detail != "" {
			repairsTotal.WithLabelValues("shrunk").Inc()
		}
	case d.Withdraw:
		decisionsTotal.WithLabelValues("withdraw").Inc()
	case d.Evict != nil:
		decisionsTotal.WithLabelValues("evict").Inc()
		if d.Evict.Cause == preempt.NodeFailures {
			repairsTotal.WithLabelValues("evicted").Inc()
		}
	}
}

// updateQueues updates the metrics, and then the statuses, of the queues whose usage changed.
func (l *loop) updateQueues() {
	clusterQueues, localQueues := l.engine.TakeChangedQueues()
	l.queues.hasten(l.engine.TakeActiveChanged())
	for _, name := range clusterQueues {
		key := statusOf{ofClusterQueue, engine.Key{Name: name}}
		if usage, ok := l.engine.QueueUsage(name); ok {
			l.gauges.note(key, usage, l.translator.clusterQueues[name])
			l.queues.noteClusterQueue(name, usage)
		} else {
			l.forgetQueue(key)
		}
	}
	for _, name := range l.engine.TakeChangedCohorts() {
		key := statusOf{ofCohort, engine.Key{Name: name}}
		if share, ok := l.engine.CohortShare(name); ok {
			l.gauges.note(key, engine.Usage{Share: &share}, nil)
			l.queues.noteCohort(name, share)
		} else {
			l.forgetQueue(key)
		}
	}
	for _, name := range localQueues {
		key := statusOf{ofLocalQueue, name}
		if usage, ok := l.engine.LocalQueueUsage(name); ok {
			l.gauges.note(key, usage, nil)
			l.queues.noteLocalQueue(name, usage)
		} else {
			l.forgetQueue(key)
		}
	}
}

func (l *loop) forgetQueue(key statusOf) {
	l.queues.forget(key)
	l.gauges.forget(key)
}

// audit compares, once a minute, what the engine counts with the API's objects, and reports differences in log,
// metrics and the status of queues. Without a difference it writes nothing.
func (l *loop) audit(ctx context.Context) {
	began := l.clock.Now()
	if !l.auditor.audit(ctx, l.engine, maps.Keys(l.translator.clusterQueues), began) {
		return
	}
	auditSeconds.Observe(l.clock.Since(began).Seconds())
	l.gauges.setDifferences(byQueue(l.auditor.found))
	messages := differenceMessages(l.auditor.found)
	result := "equal"
	if len(messages) > 0 {
		result = "different"
	}
	auditsTotal.WithLabelValues(result).Inc()
	for _, name := range l.queues.setDifferences(messages) {
		if message, differs := messages[name]; differs {
			ctrl.LoggerFrom(ctx).Error(nil, "the engine counts other quota than Workloads hold", "clusterQueue", name, "difference", message)
		}
		if usage, ok := l.engine.QueueUsage(name); ok {
			l.queues.noteClusterQueue(name, usage)
		}
	}
}

// observe subscribes the mailbox to the manager's informers.
func (l *loop) observe(ctx context.Context) ([]toolscache.InformerSynced, error) {
	var synced []toolscache.InformerSynced
	for _, kind := range watched {
		informer, err := l.mgr.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) {
				if pod, ok := o.(*corev1.Pod); !ok || isRelevantPod(pod) {
					l.mailbox.put(message{changed: o.(client.Object)})
				}
			},
			UpdateFunc: func(before, after any) {
				if w, ok := after.(*kueue.Workload); ok {
					countChange(before.(*kueue.Workload), w)
				}
				if changeMatters(before.(client.Object), after.(client.Object)) {
					l.mailbox.put(message{changed: after.(client.Object)})
				}
			},
			DeleteFunc: func(o any) {
				if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
					o = last.Obj
				}
				l.mailbox.put(message{deleted: o.(client.Object)})
			},
		})
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, nil
}

// changeMatters reports whether an update matters to the engine. Of objects that configure it only the spec counts:
// most updates are status writes of the operator itself.
func changeMatters(before, after client.Object) bool {
	switch after := after.(type) {
	case *corev1.Pod:
		return podChangeMatters(before.(*corev1.Pod), after)
	case *corev1.Node:
		return nodeChangeMatters(before.(*corev1.Node), after)
	case *kueue.ClusterQueue:
		return before.GetGeneration() != after.Generation || before.GetUID() != after.UID ||
			!maps.Equal(before.GetLabels(), after.Labels) || !maps.Equal(before.GetAnnotations(), after.Annotations)
	case *kueue.ResourceFlavor, *kueue.Cohort, *kueue.LocalQueue, *kueue.Topology:
		return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID()
	}
	return true
}
