package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/audit"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/admission/managedqueues"
	"github.com/musterhq/muster/internal/admission/report"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// loop feeds watch events to the engine and passes its decisions to the writers. It runs on the leader only. It
// starts with everything that the API server has, and decides nothing before the caches have synced.
type loop struct {
	mgr        ctrl.Manager
	engine     *engine.Engine
	translator *translate.Translator
	mailbox    *mailbox
	decisions  *decisions.Writer
	pending    *report.PendingWriter
	queues     *report.QueueStatusWriter
	log        *decisionLog // nil for none
	binds      *report.BindTimes
	gauges     *report.QueueGauges
	stall      *report.Stall
	auditor    *audit.Auditor
	promises   report.Promises
	// learned is set once the engine has been told how long earlier jobs ran.
	learned bool
	clock   clock.Clock
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
	for _, kind := range translate.Watched {
		// Replicas that do not lead fill the caches as well, so that they can take over at once.
		if _, err := mgr.GetCache().GetInformer(context.Background(), kind); err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	loop := newLoop(mgr, cfg, clock.RealClock{})
	if decisionLog != "" {
		log, err := openDecisionLog(decisionLog, translate.EngineOptions(cfg))
		if err != nil {
			return nil, err
		}
		loop.log = log
	}
	budget := loop.decisions.Budget
	recorder := decisions.NewBoundedRecorder(mgr.GetEventRecorder("muster"), budget)
	background := &Background{Busy: func() bool { return !budget.Quiet() }, Recorder: recorder}
	events := &decisions.JobEvents{Recorder: recorder}
	loop.decisions.Events, loop.pending.Events = events, events
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

func newLoop(mgr ctrl.Manager, cfg *config.Configuration, now clock.WithTicker) *loop {
	box, budget := newMailbox(), decisions.NewWriteBudget(now)
	outcome := func(ev engine.Event) { box.put(message{event: ev}) }
	out := &loop{
		mgr:    mgr,
		engine: engine.New(translate.EngineOptions(cfg)),
		translator: translate.New(translate.CountingOf(cfg.Resources), translate.QueuePolicyOf(cfg),
			cfg.NodeFailure.NotReadyGrace.Duration),
		mailbox:   box,
		decisions: decisions.NewWriter(mgr.GetClient(), mgr.GetAPIReader(), now, budget, outcome),
		pending:   report.NewPendingWriter(mgr.GetClient(), now, budget),
		queues:    report.NewQueueStatusWriter(mgr.GetClient(), now, budget, cfg.QueueStatus.Interval.Duration),
		binds:     report.NewBindTimes(func(took time.Duration) { report.BindSeconds.Observe(took.Seconds()) }),
		gauges:    report.Served,
		stall:     report.ServedStall,
		auditor:   &audit.Auditor{Cache: mgr.GetCache(), Every: audit.Interval},
		clock:     now,
	}
	out.queues.Gauges, out.translator.Pods.Filled = out.gauges, out.engine.Filled
	out.queues.Unshared = report.Unshared{ByShare: cfg.FairSharing == nil, ByUsage: cfg.AdmissionFairSharing == nil}
	return out
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
	for _, run := range []func(context.Context){l.decisions.Run, l.pending.Run, l.queues.Run} {
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
		l.checkWaiting(ctx)
		l.audit(ctx)
		l.setAlarm()
	}
}

// setAlarm sets the timer for the next time that there is something to do without a new event.
func (l *loop) setAlarm() {
	due := translate.Sooner(translate.Sooner(l.engine.Due(), l.engine.CheckDue()),
		translate.Sooner(l.translator.NextDue(), l.auditor.Due()))
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
	messages := l.mailbox.take()
	if !l.learned { // the first messages are all objects that there are
		l.learned = true
		l.apply(l.translator.EndedBefore(objectsOf(messages)), received)
	}
	for _, n := range messages {
		l.apply(n.engineEvents(l.translator, received), received)
		l.queues.Observe(n.changed, n.deleted)
	}
	l.apply(l.translator.Overdue(received), received)
	report.LostRacesTotal.Add(float64(l.translator.Pods.TakeLostRaces()))
	l.decisions.Drop(l.engine.TakeSuperseded()) // before their quota can be given to other workloads
	began := l.clock.Now()
	l.stall.Begin(began)
	decisions := l.engine.Decide(began)
	l.stall.End(len(decisions), l.engine.Busy())
	took := l.clock.Since(began)
	report.PassSeconds.Observe(took.Seconds())
	report.CountAttempt(decisions, took)
	l.log.recordPass(began, decisions)
	if l.engine.Busy() {
		l.mailbox.wakeUp() // comes back for the rest, after what has arrived meanwhile
	}
	for _, d := range decisions {
		l.count(d, began)
		switch {
		case d.Withdraw:
			l.decisions.Withdraw(d)
		case d.Try != nil:
			l.decisions.Take(d) // its reason to wait is written meanwhile
		case d.Admit != nil || d.Replace != nil || d.Resize != nil || d.Evict != nil:
			l.pending.Forget(d.Key)
			l.decisions.Take(d)
		default:
			l.pending.Note(d)
		}
	}
	l.promises.Count(l.engine.PromisesKept(), l.engine.PromisesLate())
	l.updateQueues()
}

// apply applies events to the engine.
func (l *loop) apply(events []engine.Event, now time.Time) {
	for _, event := range events {
		l.log.recordEvent(event)
		l.binds.Apply(event, now)
		l.gauges.Apply(event)
		l.engine.Apply(event)
	}
}

// count updates the metrics for a decision.
func (l *loop) count(d engine.Decision, now time.Time) {
	decided := func(kind string) { report.DecisionsTotal.WithLabelValues(kind).Inc() }
	repaired := func(outcome string) { report.RepairsTotal.WithLabelValues(outcome).Inc() }
	switch {
	case d.Admit != nil:
		decided("admit")
		l.binds.Admitted(d.Key, d.Admit, now)
	case d.Try != nil:
		decided("try")
	case d.Replace != nil:
		decided("replace")
		repaired("replaced")
	case d.Resize != nil:
		decided("resize")
		if d.Resize.Detail != "" {
			repaired("shrunk")
		}
	case d.Withdraw:
		decided("withdraw")
	case d.Evict != nil:
		decided("evict")
		if d.Evict.Cause == preempt.NodeFailures {
			repaired("evicted")
		}
	}
}

// updateQueues updates the metrics, and then the statuses, of the queues whose usage changed.
func (l *loop) updateQueues() {
	clusterQueues, localQueues := l.engine.TakeChangedQueues()
	l.queues.Hasten(l.engine.TakeActiveChanged())
	for _, name := range clusterQueues {
		usage, exists := l.engine.QueueUsage(name)
		l.updateQueue(report.OfClusterQueue, engine.Key{Name: name}, usage, exists)
	}
	for _, name := range l.engine.TakeChangedCohorts() {
		share, exists := l.engine.CohortShare(name)
		l.updateQueue(report.OfCohort, engine.Key{Name: name}, engine.Usage{Share: &share}, exists)
	}
	for _, key := range localQueues {
		usage, exists := l.engine.LocalQueueUsage(key)
		l.updateQueue(report.OfLocalQueue, key, usage, exists)
	}
}

// updateQueue updates the metrics and the status of a queue or cohort, or drops them if it does not exist any more.
func (l *loop) updateQueue(kind report.StatusKind, of engine.Key, usage engine.Usage, exists bool) {
	key := report.StatusOf{Kind: kind, Key: of}
	if !exists {
		l.queues.Forget(key)
		l.gauges.Forget(key)
		return
	}
	var spec *kueue.ClusterQueue
	if kind == report.OfClusterQueue {
		spec = l.translator.ClusterQueues[of.Name]
	}
	l.gauges.Note(key, usage, spec)
	l.queues.Note(key, usage)
}

// checkWaiting lets the engine check a workload that waits, once a second while there is nothing else to do. Those that
// should not have waited are counted, logged, and decided on in the next turn.
func (l *loop) checkWaiting(ctx context.Context) {
	now := l.clock.Now()
	missed, checked := l.engine.CheckWaiting(now)
	if !checked {
		return
	}
	l.log.recordCheck(now, missed)
	for _, key := range missed {
		report.MissedWakesTotal.Inc()
		ctrl.LoggerFrom(ctx).Error(nil, "the workload waited although it could have been admitted; it is evaluated now",
			"workload", key.String())
	}
	if len(missed) > 0 {
		l.mailbox.wakeUp()
	}
}

// audit compares, once a minute, what the engine counts with the API's objects, and reports differences in log,
// metrics and the status of queues. Without a difference it writes nothing.
func (l *loop) audit(ctx context.Context) {
	began := l.clock.Now()
	if !l.auditor.Audit(ctx, l.engine, maps.Keys(l.translator.ClusterQueues), began) {
		return
	}
	audit.Seconds.Observe(l.clock.Since(began).Seconds())
	l.gauges.SetDifferences(l.auditor.ByQueue())
	messages := l.auditor.Messages()
	result := "equal"
	if len(messages) > 0 {
		result = "different"
	}
	audit.Total.WithLabelValues(result).Inc()
	for _, name := range l.queues.SetDifferences(messages) {
		if message, differs := messages[name]; differs {
			ctrl.LoggerFrom(ctx).Error(nil, "the engine counts other quota than Workloads hold", "clusterQueue", name,
				"difference", message)
		}
		if usage, ok := l.engine.QueueUsage(name); ok {
			l.queues.Note(report.StatusOf{Kind: report.OfClusterQueue, Key: engine.Key{Name: name}}, usage)
		}
	}
}

// observe subscribes the mailbox to the manager's informers.
func (l *loop) observe(ctx context.Context) ([]toolscache.InformerSynced, error) {
	var synced []toolscache.InformerSynced
	for _, kind := range translate.Watched {
		informer, err := l.mgr.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) {
				if pod, ok := o.(*corev1.Pod); !ok || translate.IsRelevantPod(pod) {
					l.mailbox.put(message{changed: o.(client.Object)})
				}
			},
			UpdateFunc: func(before, after any) {
				if w, ok := after.(*kueue.Workload); ok {
					report.CountChange(before.(*kueue.Workload), w)
				}
				if translate.ChangeMatters(before.(client.Object), after.(client.Object)) {
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
