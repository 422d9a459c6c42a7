package report

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/workload"
)

// QueueStatusWriter writes the status of queues and cohorts when it changes.
type QueueStatusWriter struct {
	client client.Client
	clock  clock.WithTicker
	budget *decisions.WriteBudget
	// interval is the least time between two writes for a queue. If the last write is longer ago, or the queue's spec
	// has changed, it is written at once. So is its condition Active when that changes.
	interval time.Duration
	queue    workqueue.TypedRateLimitingInterface[StatusOf]
	// Gauges are given the states of queues.
	Gauges   *QueueGauges
	Unshared Unshared

	mu    sync.Mutex
	usage map[StatusOf]engine.Usage
	wrote map[StatusOf]time.Time
	// hasty are the queues whose condition Active may differ from what was written.
	hasty map[StatusOf]bool
	// observed is the version of each ClusterQueue and LocalQueue that the engine has.
	observed map[StatusOf]specVersion
	// cyclic are the ClusterQueues under a cycle of cohorts, which the status of their LocalQueues mentions too.
	cyclic map[string]bool
	// differences are what the last audit found, by ClusterQueue.
	differences map[string]string
}

// StatusOf identifies the object that has a status.
type StatusOf struct {
	Kind StatusKind
	engine.Key
}

// StatusKind is the kind of an object that has a status.
type StatusKind int

const (
	OfClusterQueue StatusKind = iota
	OfLocalQueue
	OfCohort
)

// NewQueueStatusWriter returns a writer that writes the numbers of a queue at most once an interval.
func NewQueueStatusWriter(c client.Client, clock clock.WithTicker, budget *decisions.WriteBudget,
	interval time.Duration) *QueueStatusWriter {
	return &QueueStatusWriter{
		client: c, clock: clock, budget: budget, interval: interval,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[StatusOf](100*time.Millisecond, decisions.LongestRetry),
			workqueue.TypedRateLimitingQueueConfig[StatusOf]{Clock: clock}),
		usage: map[StatusOf]engine.Usage{},
		wrote: map[StatusOf]time.Time{}, hasty: map[StatusOf]bool{}, observed: map[StatusOf]specVersion{},
		cyclic: map[string]bool{}, Gauges: newQueueGauges(),
	}
}

// Note queues the usage of a queue, or the share of a cohort, for writing. A ClusterQueue must be noted before the
// LocalQueues that point to it.
func (qsw *QueueStatusWriter) Note(key StatusOf, u engine.Usage) {
	qsw.mu.Lock()
	if key.Kind == OfClusterQueue {
		qsw.cyclic[key.Name] = u.Cyclic
	}
	qsw.usage[key] = u
	wait := qsw.remaining(key)
	if qsw.hasty[key] {
		wait = 0
	}
	qsw.mu.Unlock()
	qsw.queue.AddAfter(key, wait)
}

// Hasten has the condition Active of these queues written at once, should it have changed, when they are noted next. A
// ClusterQueue has no namespace.
func (qsw *QueueStatusWriter) Hasten(queues sets.Set[engine.Key]) {
	qsw.mu.Lock()
	defer qsw.mu.Unlock()
	for key := range queues {
		kind := OfLocalQueue
		if key.Namespace == "" {
			kind = OfClusterQueue
		}
		qsw.hasty[StatusOf{kind, key}] = true
	}
}

// Forget drops the state of a deleted object.
func (qsw *QueueStatusWriter) Forget(key StatusOf) {
	qsw.mu.Lock()
	defer qsw.mu.Unlock()
	delete(qsw.usage, key)
	delete(qsw.wrote, key)
	delete(qsw.hasty, key)
	if key.Kind == OfClusterQueue {
		delete(qsw.cyclic, key.Name)
	}
}

// SetDifferences sets the differences that an audit found, by ClusterQueue, and returns the ClusterQueues whose
// difference changed.
func (qsw *QueueStatusWriter) SetDifferences(found map[string]string) (changed []string) {
	qsw.mu.Lock()
	defer qsw.mu.Unlock()
	for name := range qsw.differences {
		if _, still := found[name]; !still {
			changed = append(changed, name)
		}
	}
	for name, message := range found {
		if qsw.differences[name] != message {
			changed = append(changed, name)
		}
	}
	qsw.differences = found
	slices.Sort(changed)
	return changed
}

// remaining returns how long the status of the object must not be written yet. More than the interval is left only if
// the clock was set back since the last write, and counts as over. The caller holds the lock.
func (qsw *QueueStatusWriter) remaining(key StatusOf) time.Duration {
	wait := qsw.wrote[key].Add(qsw.interval).Sub(qsw.clock.Now())
	if wait > qsw.interval {
		return 0
	}
	return wait
}

// Run writes statuses until the context ends.
func (qsw *QueueStatusWriter) Run(ctx context.Context) { decisions.Work(ctx, qsw.queue, 2, qsw.Write) }

// Write writes the status of one queue or cohort, as it was last noted.
func (qsw *QueueStatusWriter) Write(ctx context.Context, key StatusOf) {
	if qsw.noted(key) && qsw.budget.WaitForQueue(ctx) != nil {
		return // the context ended
	}
	qsw.mu.Lock()
	u, ok := qsw.usage[key]
	wait, as := qsw.remaining(key), qsw.observed[key]
	early := wait > 0 && qsw.hasty[key] // only a change of Active is written before the interval is over
	if wait <= 0 || early {
		delete(qsw.usage, key)
		delete(qsw.hasty, key)
	}
	qsw.mu.Unlock()
	switch {
	case !ok:
		return
	case wait > 0 && !early: // it was noted while the last write was in flight
		qsw.queue.AddAfter(key, wait)
		return
	}
	wrote, err := qsw.try(ctx, key, u, early)
	qsw.mu.Lock()
	defer qsw.mu.Unlock()
	switch {
	case err != nil:
		ctrl.LoggerFrom(ctx).V(1).Info("retrying to write the status of a queue", "queue", key.String(), "cause", err.Error())
		qsw.hasty[key] = qsw.hasty[key] || early
		qsw.keep(key, u)
		qsw.queue.AddRateLimited(key)
		return
	case wrote && qsw.observed[key] == as:
		qsw.wrote[key] = qsw.clock.Now()
	case early && !wrote: // the numbers may have changed
		qsw.keep(key, u)
		qsw.queue.AddAfter(key, wait)
	}
	qsw.queue.Forget(key)
}

// keep keeps the usage for another write, unless a newer one was noted. The caller holds the lock.
func (qsw *QueueStatusWriter) keep(key StatusOf, u engine.Usage) {
	if _, newer := qsw.usage[key]; !newer {
		qsw.usage[key] = u
	}
}

// noted reports whether the status of the object is to be written now.
func (qsw *QueueStatusWriter) noted(key StatusOf) bool {
	qsw.mu.Lock()
	defer qsw.mu.Unlock()
	_, ok := qsw.usage[key]
	return ok && (qsw.hasty[key] || qsw.remaining(key) <= 0)
}

// try writes the status of the object if it has changed; early, only if its conditions have.
func (qsw *QueueStatusWriter) try(ctx context.Context, key StatusOf, u engine.Usage,
	early bool) (wrote bool, err error) {
	switch key.Kind {
	case OfClusterQueue:
		return qsw.tryClusterQueue(ctx, key, u, early)
	case OfLocalQueue:
		return qsw.tryLocalQueue(ctx, key, u, early)
	default:
		return qsw.tryCohort(ctx, key.Name, u)
	}
}

func (qsw *QueueStatusWriter) tryClusterQueue(ctx context.Context, key StatusOf, u engine.Usage,
	early bool) (wrote bool, err error) {
	var seen kueue.ClusterQueue
	if err := qsw.client.Get(ctx, client.ObjectKey(key.Key), &seen); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !qsw.isCurrent(key, &seen) {
		return false, nil
	}
	around, err := qsw.dependencies(ctx, &seen)
	if err != nil {
		return false, err
	}
	around.cyclic = u.Cyclic
	qsw.mu.Lock()
	around.difference = qsw.differences[key.Name]
	qsw.mu.Unlock()
	desired := seen.DeepCopy()
	clusterQueueStatus(desired, u, around, qsw.clock.Now())
	qsw.Gauges.state(key, stateOf(desired))
	return qsw.patch(ctx, &seen, desired, equality.Semantic.DeepEqual(seen.Status, desired.Status) ||
		early && equality.Semantic.DeepEqual(seen.Status.Conditions, desired.Status.Conditions))
}

func (qsw *QueueStatusWriter) tryLocalQueue(ctx context.Context, key StatusOf, u engine.Usage,
	early bool) (wrote bool, err error) {
	var seen kueue.LocalQueue
	if err := qsw.client.Get(ctx, client.ObjectKey(key.Key), &seen); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !qsw.isCurrent(key, &seen) {
		return false, nil
	}
	var behind *kueue.ClusterQueue
	var around dependencies
	var clusterQueue kueue.ClusterQueue
	switch err := qsw.client.Get(ctx, client.ObjectKey{Name: string(seen.Spec.ClusterQueue)}, &clusterQueue); {
	case err == nil:
		behind = &clusterQueue
		if around, err = qsw.dependencies(ctx, behind); err != nil {
			return false, err
		}
		qsw.mu.Lock()
		around.cyclic = qsw.cyclic[behind.Name]
		qsw.mu.Unlock()
	case client.IgnoreNotFound(err) != nil:
		return false, err
	}
	desired := seen.DeepCopy()
	localQueueStatus(desired, behind, around, u, qsw.clock.Now())
	active := meta.FindStatusCondition(desired.Status.Conditions, kueue.LocalQueueActive)
	qsw.Gauges.state(key, string(active.Status))
	return qsw.patch(ctx, &seen, desired, equality.Semantic.DeepEqual(seen.Status, desired.Status) ||
		early && equality.Semantic.DeepEqual(seen.Status.Conditions, desired.Status.Conditions))
}

func (qsw *QueueStatusWriter) patch(ctx context.Context, seen, desired client.Object, same bool) (bool, error) {
	if same {
		return false, nil
	}
	return true, qsw.client.Status().Patch(ctx, desired,
		client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}))
}

// clusterQueueStatus sets the status of a ClusterQueue: its numbers, and whether it can admit.
func clusterQueueStatus(q *kueue.ClusterQueue, u engine.Usage, around dependencies, now time.Time) {
	active, why, message := canAdmit(q, around)
	condition := metav1.Condition{Type: kueue.ClusterQueueActive, Status: metav1.ConditionTrue, Reason: why,
		Message: message}
	if !active {
		condition.Status = metav1.ConditionFalse
	}
	setCondition(&q.Status.Conditions, q, now, condition)
	reportAudit(q, around.difference, now)
	q.Status.PendingWorkloads = int32(u.Pending)
	q.Status.ReservingWorkloads = int32(u.Reserving)
	q.Status.AdmittedWorkloads = int32(u.Admitted)
	q.Status.FlavorsReservation = flavorUsage(&q.Spec, u.Reserved)
	q.Status.FlavorsUsage = flavorUsage(&q.Spec, u.Used)
	q.Status.FairSharing = shareStatus(u.Share)
}

// reportAudit sets the condition about the last audit, or removes it if the audit found no difference.
func reportAudit(q *kueue.ClusterQueue, difference string, now time.Time) {
	if difference == "" {
		meta.RemoveStatusCondition(&q.Status.Conditions, muster.QuotaDiffersCondition)
		return
	}
	setCondition(&q.Status.Conditions, q, now, metav1.Condition{Type: muster.QuotaDiffersCondition,
		Status: metav1.ConditionTrue, Reason: muster.QuotaDiffersReason, Message: difference})
}

// setCondition sets a condition of the queue as of now.
func setCondition(conditions *[]metav1.Condition, queue client.Object, now time.Time, c metav1.Condition) {
	c.Message = workload.Cut(c.Message, workload.ConditionMessageBytes)
	c.ObservedGeneration, c.LastTransitionTime = queue.GetGeneration(), metav1.NewTime(now)
	meta.SetStatusCondition(conditions, c)
}

// stateOf returns the state of the ClusterQueue, as a value of its metric's label.
func stateOf(q *kueue.ClusterQueue) string {
	switch {
	case !q.DeletionTimestamp.IsZero():
		return stateTerminating
	case meta.IsStatusConditionTrue(q.Status.Conditions, kueue.ClusterQueueActive):
		return stateActive
	}
	return statePending
}

// flavorUsage lists amounts in the order of the queue's spec, with the part of each that is borrowed.
func flavorUsage(spec *kueue.ClusterQueueSpec, sums map[quota.FlavorResource]int64) []kueue.FlavorUsage {
	var out []kueue.FlavorUsage
	for _, g := range spec.ResourceGroups {
		for _, f := range g.Flavors {
			usage := kueue.FlavorUsage{Name: f.Name}
			for _, r := range f.Resources {
				sum := sums[quota.FlavorResource{Flavor: string(f.Name), Resource: string(r.Name)}]
				var borrowed int64
				if spec.Cohort != "" {
					borrowed = max(0, quota.Sub(sum, quota.FromQuantity(r.Name, r.NominalQuota)))
				}
				usage.Resources = append(usage.Resources, kueue.ResourceUsage{
					Name: r.Name, Total: quota.ToQuantity(r.Name, sum), Borrowed: quota.ToQuantity(r.Name, borrowed)})
			}
			out = append(out, usage)
		}
	}
	return out
}

// localQueueStatus sets the status of a LocalQueue: its numbers, and whether the ClusterQueue behind it can admit.
// behind is nil if that does not exist.
func localQueueStatus(q *kueue.LocalQueue, behind *kueue.ClusterQueue, around dependencies,
	u engine.Usage, now time.Time) {
	active := metav1.Condition{Type: kueue.LocalQueueActive, Status: metav1.ConditionFalse}
	if active.Reason, active.Message = localQueueFault(q, behind, around); active.Reason == "" {
		active.Status, active.Reason = metav1.ConditionTrue, kueue.ClusterQueueActiveReasonReady
		active.Message = "Can submit new workloads to localQueue" + around.ineffectiveIn(q, behind)
	}
	setCondition(&q.Status.Conditions, q, now, active)
	q.Status.PendingWorkloads = int32(u.Pending)
	q.Status.ReservingWorkloads = int32(u.Reserving)
	q.Status.AdmittedWorkloads = int32(u.Admitted)
	q.Status.FlavorsReservation = localFlavorUsage(u.Reserved)
	q.Status.FlavorUsage = localFlavorUsage(u.Used)
	q.Status.FairSharing = consumptionStatus(u.Consumption)
}

// localQueueFault returns why a LocalQueue cannot admit, as the reason and message of its condition; "" if it can.
func localQueueFault(q *kueue.LocalQueue, behind *kueue.ClusterQueue, around dependencies) (why, message string) {
	clusterQueue := "ClusterQueue " + string(q.Spec.ClusterQueue)
	switch {
	case !q.DeletionTimestamp.IsZero():
		return kueue.ClusterQueueActiveReasonTerminating, "LocalQueue is being deleted"
	case translate.Stopped(q.Spec.StopPolicy):
		return kueue.ClusterQueueActiveReasonStopped, "LocalQueue is stopped"
	case behind == nil:
		return kueue.LocalQueueActiveReasonClusterQueueDoesNotExist,
			clusterQueue + " doesn't exist: create it, or use a LocalQueue that names another"
	case !behind.DeletionTimestamp.IsZero():
		return kueue.LocalQueueActiveReasonClusterQueueIsInactive, clusterQueue + " is being deleted"
	case workload.Closed(behind):
		return kueue.LocalQueueActiveReasonClusterQueueIsInactive, clusterQueue + " is stopped"
	}
	if active, _, fault := canAdmit(behind, around); !active {
		return kueue.LocalQueueActiveReasonClusterQueueIsInactive, clusterQueue + " is inactive: " + fault
	}
	return "", ""
}

// localFlavorUsage lists amounts, sorted by name.
func localFlavorUsage(sums map[quota.FlavorResource]int64) []kueue.LocalQueueFlavorUsage {
	byFlavor := map[string][]kueue.LocalQueueResourceUsage{}
	for fr, amount := range sums {
		name := corev1.ResourceName(fr.Resource)
		byFlavor[fr.Flavor] = append(byFlavor[fr.Flavor],
			kueue.LocalQueueResourceUsage{Name: name, Total: quota.ToQuantity(name, amount)})
	}
	var out []kueue.LocalQueueFlavorUsage
	for flavor, resources := range byFlavor {
		slices.SortFunc(resources, func(a, b kueue.LocalQueueResourceUsage) int { return cmp.Compare(a.Name, b.Name) })
		out = append(out, kueue.LocalQueueFlavorUsage{Name: kueue.ResourceFlavorReference(flavor), Resources: resources})
	}
	slices.SortFunc(out, func(a, b kueue.LocalQueueFlavorUsage) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
