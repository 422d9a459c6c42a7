package admission

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/plain"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// translator translates API objects into engine events. It keeps the objects that the meaning of others depends on:
// LimitRanges, RuntimeClasses and AdmissionChecks. It must be used by one goroutine only.
type translator struct {
	*accountant
	policy        queuePolicy
	nodes         *nodeWatch
	pods          *podWatch
	checks        map[string]*kueue.AdmissionCheck
	clusterQueues map[string]*kueue.ClusterQueue
	workloads     map[engine.Key]*kueue.Workload
}

// queuePolicy is the part of the configuration that orders Workloads in a queue.
type queuePolicy struct {
	// requeueByEviction queues a workload that was evicted because its pods were not ready in time by the time of
	// that eviction, behind those already waiting.
	requeueByEviction bool
}

func newTranslator(counting podspec.Counting, policy queuePolicy, notReadyGrace time.Duration) *translator {
	return &translator{
		accountant: newAccountant(counting), policy: policy,
		nodes: newNodeWatch(notReadyGrace), pods: newPodWatch(),
		checks:        map[string]*kueue.AdmissionCheck{},
		clusterQueues: map[string]*kueue.ClusterQueue{},
		workloads:     map[engine.Key]*kueue.Workload{},
	}
}

// changed returns the events for an object that was added or updated. The object belongs to the cache and must not be
// modified.
func (t *translator) changed(object client.Object, now time.Time) []engine.Event {
	switch o := object.(type) {
	case *corev1.Pod:
		return t.pods.set(o, now)
	case *corev1.Node:
		return []engine.Event{engine.NodeSet{Node: t.nodes.set(o, now)}}
	case *kueue.Topology:
		return []engine.Event{engine.TopologySet{Topology: topologyOf(o)}}
	case *kueue.Workload:
		return t.workloadChanged(o)
	case *kueue.ClusterQueue:
		t.clusterQueues[o.Name] = o
		return []engine.Event{engine.ClusterQueueSet{ClusterQueue: t.clusterQueue(o)}}
	case *kueue.AdmissionCheck:
		was := t.checks[o.Name]
		t.checks[o.Name] = o
		if was != nil && lifecycle.IsActive(was) == lifecycle.IsActive(o) {
			return nil
		}
		return t.queuesWithCheck(o.Name)
	case *corev1.LimitRange:
		return t.recountedWorkloads(t.setLimitRange(o), func(w *kueue.Workload) bool { return w.Namespace == o.Namespace })
	case *nodev1.RuntimeClass:
		return t.recountedWorkloads(t.setRuntimeClass(o), func(w *kueue.Workload) bool { return namesRuntimeClass(w, o.Name) })
	case *kueue.LocalQueue:
		set := engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: keyOf(o), ClusterQueue: string(o.Spec.ClusterQueue),
			Stopped: stopped(o.Spec.StopPolicy), Terminating: !o.DeletionTimestamp.IsZero(), Weight: weightOf(o.Spec.FairSharing)}}
		remember(&set.LocalQueue, o.Status.FairSharing)
		return []engine.Event{set}
	case *kueue.Cohort:
		return []engine.Event{engine.CohortSet{Cohort: engine.Cohort{
			Name: o.Name, Parent: string(o.Spec.ParentName), Quotas: quotasOf(o.Spec.ResourceGroups), Weight: weightOf(o.Spec.FairSharing)}}}
	case *kueue.ResourceFlavor:
		return []engine.Event{engine.FlavorSet{Flavor: engine.Flavor{
			Name: o.Name, NodeLabels: o.Spec.NodeLabels, NodeTaints: o.Spec.NodeTaints, Tolerations: o.Spec.Tolerations,
			Topology: string(ptr.Deref(o.Spec.TopologyName, ""))}}}
	case *corev1.Namespace:
		return []engine.Event{engine.NamespaceSet{Name: o.Name, Labels: o.Labels}}
	}
	panic(fmt.Sprintf("no event for a %T", object)) // a watched kind without a translation
}

// deleted returns the events for an object that was deleted.
func (t *translator) deleted(object client.Object) []engine.Event {
	switch o := object.(type) {
	case *corev1.Pod:
		return t.pods.delete(o)
	case *corev1.Node:
		t.nodes.forget(o.Name)
		return []engine.Event{engine.NodeDeleted{Name: o.Name}}
	case *kueue.Topology:
		return []engine.Event{engine.TopologyDeleted{Name: o.Name}}
	case *kueue.Workload:
		return t.workloadGone(o)
	case *kueue.ClusterQueue:
		delete(t.clusterQueues, o.Name)
		return []engine.Event{engine.ClusterQueueDeleted{Name: o.Name}}
	case *kueue.AdmissionCheck:
		delete(t.checks, o.Name)
		return t.queuesWithCheck(o.Name)
	case *corev1.LimitRange:
		return t.recountedWorkloads(t.deleteLimitRange(o.Namespace, o.Name), func(w *kueue.Workload) bool { return w.Namespace == o.Namespace })
	case *nodev1.RuntimeClass:
		return t.recountedWorkloads(t.deleteRuntimeClass(o.Name), func(w *kueue.Workload) bool { return namesRuntimeClass(w, o.Name) })
	case *kueue.LocalQueue:
		return []engine.Event{engine.LocalQueueDeleted{Key: keyOf(o)}}
	case *kueue.Cohort:
		return []engine.Event{engine.CohortDeleted{Name: o.Name}}
	case *kueue.ResourceFlavor:
		return []engine.Event{engine.FlavorDeleted{Name: o.Name}}
	case *corev1.Namespace:
		return []engine.Event{engine.NamespaceDeleted{Name: o.Name}}
	}
	panic(fmt.Sprintf("no event for a %T", object))
}

// due returns when overdue must be called next even if no object changes, or zero if it need not be.
func (t *translator) due() time.Time { return sooner(t.nodes.due(), t.pods.due()) }

// overdue returns the events for grace periods that are over at now.
func (t *translator) overdue(now time.Time) []engine.Event {
	var events []engine.Event
	for _, node := range t.nodes.lost(now) {
		events = append(events, engine.NodeSet{Node: node})
	}
	return append(events, t.pods.overdue(now)...)
}

// sooner returns the earlier of two times, where zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (t *translator) workloadChanged(w *kueue.Workload) []engine.Event {
	if workload.IsFinished(w) || !w.DeletionTimestamp.IsZero() && !workload.HoldsQuota(w) {
		return t.workloadGone(w) // also one that only a finalizer still keeps: it must not be admitted any more
	}
	t.workloads[keyOf(w)] = w
	return []engine.Event{engine.WorkloadSet{Workload: t.workload(w)}}
}

func (t *translator) workloadGone(w *kueue.Workload) []engine.Event {
	delete(t.workloads, keyOf(w))
	return []engine.Event{engine.WorkloadGone{Key: keyOf(w)}}
}

// recountedWorkloads returns the events, ordered by key, for the Workloads concerned by an object that affects how
// their requests are counted; none unless that object changed.
func (t *translator) recountedWorkloads(changed bool, concerns func(*kueue.Workload) bool) []engine.Event {
	if !changed {
		return nil
	}
	var events []engine.Event
	for _, key := range slices.SortedFunc(maps.Keys(t.workloads), order.CompareKeys) {
		if w := t.workloads[key]; concerns(w) {
			events = append(events, engine.WorkloadSet{Workload: t.workload(w)})
		}
	}
	return events
}

// queuesWithCheck returns the events, ordered by name, for the ClusterQueues that use the check.
func (t *translator) queuesWithCheck(check string) []engine.Event {
	var events []engine.Event
	for _, name := range slices.Sorted(maps.Keys(t.clusterQueues)) {
		q := t.clusterQueues[name]
		if slices.ContainsFunc(lifecycle.CheckRules(&q.Spec), func(r kueue.AdmissionCheckStrategyRule) bool { return string(r.Name) == check }) {
			events = append(events, engine.ClusterQueueSet{ClusterQueue: t.clusterQueue(q)})
		}
	}
	return events
}

func keyOf(object client.Object) engine.Key {
	return engine.Key{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func objectKey(key engine.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
}

// workload translates a Workload for the engine.
func (t *translator) workload(w *kueue.Workload) engine.Workload {
	podSets, refused := t.account(w)
	code, blamed := pendingReason(w)
	return engine.Workload{
		Key: keyOf(w),
		UID: string(w.UID), Generation: w.Generation, Version: versionOf(w),
		Queue:         string(w.Spec.QueueName),
		Priority:      ptr.Deref(w.Spec.Priority, 0),
		QueuedAt:      t.policy.queuedAt(w),
		Inactive:      !workload.IsActive(w) || !w.DeletionTimestamp.IsZero(),
		BackoffReason: backoffReason(w),
		Unheld:        !workload.HoldsQuota(w) && workload.IsTrue(w, muster.UnheldCondition),
		Gated:         plain.Text(w.Annotations[kueue.AdmissionGatedByAnnotation]), // as its message has it
		PodSets:       podSets,
		Refused:       refused,
		Admission:     admissionOf(w), ReservedAt: workload.TrueSince(w, kueue.WorkloadQuotaReserved),
		Admitted: workload.IsAdmitted(w),
		Ready:    !awaitsReadiness(w),
		Evicted:  isLeaving(w), LostNodes: lostNodes(w),
		ResizedAt:    workload.TrueSince(w, muster.ResizedCondition),
		ReportedCode: code, ReportedMessage: blamed,
	}
}

// awaitsReadiness reports whether other workloads may have to wait until the Workload's pods are ready. The pods of a
// deleted Workload will never be ready, however long they take to terminate.
func awaitsReadiness(w *kueue.Workload) bool {
	return w.DeletionTimestamp.IsZero() && workload.ReportsReadiness(w) && !workload.IsTrue(w, kueue.WorkloadPodsReady)
}

// isLeaving reports whether the Workload is being evicted or deleted. Its condition Evicted stays true until it is admitted
// again, and says nothing about that next admission while its write is pending.
func isLeaving(w *kueue.Workload) bool {
	return workload.HoldsQuota(w) && workload.IsEvicted(w) || !w.DeletionTimestamp.IsZero()
}

// lostNodes reports whether the Workload was evicted because its nodes failed and has not been admitted since. A
// deleted Workload is not admitted again, so no capacity is kept for it.
func lostNodes(w *kueue.Workload) bool {
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	return w.DeletionTimestamp.IsZero() && evicted != nil && evicted.Status == metav1.ConditionTrue && evicted.Reason == kueue.WorkloadEvictedDueToNodeFailures
}

// queuedAt returns the time by which the Workload is ordered in its queue: its creation time, or the one that its job
// sets by annotation. A Workload whose start failed may go behind the others, by the time of its eviction.
func (p queuePolicy) queuedAt(w *kueue.Workload) time.Time {
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if evicted != nil && evicted.Status == metav1.ConditionTrue {
		late := evicted.Reason == kueue.WorkloadEvictedByPodsReadyTimeout && p.requeueByEviction
		if late || evicted.Reason == kueue.WorkloadEvictedByAdmissionCheck {
			return evicted.LastTransitionTime.Time
		}
	}
	if queued, err := time.Parse(time.RFC3339, w.Annotations[muster.QueuedTimeAnnotation]); err == nil {
		return queued
	}
	return w.CreationTimestamp.Time
}

// backoffReason says until when, or for what, the Workload stays out of its queue; "" if it does not.
func backoffReason(w *kueue.Workload) string {
	requeued := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued)
	if state := w.Status.RequeueState; state != nil && state.RequeueAt != nil {
		asked := requeued != nil && requeued.Status == metav1.ConditionFalse && requeued.Reason == kueue.WorkloadEvictedByAdmissionCheck
		if asked || ptr.Deref(state.Count, 0) == 0 {
			return fmt.Sprintf("waits until %s, as an admission check asked", state.RequeueAt.UTC().Format(time.RFC3339))
		}
		return fmt.Sprintf("waits until %s after eviction number %d for pods that were not ready",
			state.RequeueAt.UTC().Format(time.RFC3339), ptr.Deref(state.Count, 0))
	}
	if workload.IsDrained(w) {
		return "" // the stop policy of its queue holds it back, and no longer than those that came later
	}
	if requeued != nil && requeued.Status == metav1.ConditionFalse {
		return requeued.Message
	}
	return ""
}

// pendingReason returns the pending reason in the status, and its message if the message names what must be fixed.
func pendingReason(w *kueue.Workload) (code reason.Code, blamed string) {
	reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if reserved == nil || reserved.Status == metav1.ConditionTrue {
		return reason.None, ""
	}
	code = reason.Code(reserved.Reason)
	if code.Actionable() {
		blamed = reserved.Message
	}
	return code, blamed
}

// versionOf returns the object's resourceVersion as a number, which grows with every change.
func versionOf(object client.Object) int64 {
	version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0 // the object was never stored
	}
	return version
}

// admissionOf returns what the Workload holds: its admission less what its ended pods gave back, or nil if it has none.
func admissionOf(w *kueue.Workload) *engine.Admission {
	if w.Status.Admission == nil {
		return nil
	}
	out := &engine.Admission{ClusterQueue: string(w.Status.Admission.ClusterQueue)}
	for i := range w.Status.Admission.PodSetAssignments {
		a := &w.Status.Admission.PodSetAssignments[i]
		left, given := workload.PodsHoldingQuota(w, a)
		assignment := engine.Assignment{PodSet: string(a.Name), Count: left, Flavors: map[string]string{}, Usage: map[string]int64{}}
		for resource, name := range a.Flavors {
			assignment.Flavors[string(resource)] = string(name)
			assignment.Usage[string(resource)] = share(quota.FromQuantity(resource, a.ResourceUsage[resource]), left, given)
		}
		assignment.Surplus = surplusOf(w, a)
		assignment.Places, assignment.Within = placesFrom(a.TopologyAssignment)
		out.PodSets = append(out.PodSets, assignment)
	}
	return out
}

// surplusOf returns what terminating pods beyond the assignment still use, by resource; nil if there are none.
func surplusOf(w *kueue.Workload, a *kueue.PodSetAssignment) map[string]int64 {
	var out map[string]int64
	for _, request := range w.Status.ResourceRequests {
		if request.Name != a.Name {
			continue
		}
		for name, uses := range request.Resources {
			more := quota.Sub(quota.FromQuantity(name, uses), quota.FromQuantity(name, a.ResourceUsage[name]))
			if _, given := a.Flavors[name]; !given || more <= 0 {
				continue
			}
			if out == nil {
				out = map[string]int64{}
			}
			out[string(name)] = more
		}
	}
	return out
}

// share returns what `pods` of the `of` pods use of an amount that all of them use together.
func share(amount int64, pods, of int32) int64 {
	if pods >= of || of == 0 {
		return amount
	}
	return quota.Times(amount/int64(of), pods)
}
