package translate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/plain"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// Translator translates API objects into engine events. It keeps the objects that the meaning of others depends on:
// LimitRanges, RuntimeClasses and AdmissionChecks. It must be used by one goroutine only.
type Translator struct {
	*accountant
	policy        QueuePolicy
	nodes         *nodeWatch
	Pods          *podWatch
	checks        map[string]*kueue.AdmissionCheck
	ClusterQueues map[string]*kueue.ClusterQueue
	workloads     map[engine.Key]*kueue.Workload
}

// New returns a translator that has observed nothing yet.
func New(counting podspec.Counting, policy QueuePolicy, notReadyGrace time.Duration) *Translator {
	return &Translator{
		accountant: newAccountant(counting), policy: policy,
		nodes: newNodeWatch(notReadyGrace), Pods: newPodWatch(),
		checks:        map[string]*kueue.AdmissionCheck{},
		ClusterQueues: map[string]*kueue.ClusterQueue{},
		workloads:     map[engine.Key]*kueue.Workload{},
	}
}

// Changed returns the events for an object that was added or updated. The object belongs to the cache and must not be
// modified.
func (t *Translator) Changed(object client.Object, now time.Time) []engine.Event {
	switch o := object.(type) {
	case *corev1.Pod:
		return t.Pods.set(o, now)
	case *corev1.Node:
		return []engine.Event{engine.NodeSet{Node: t.nodes.set(o, now)}}
	case *kueue.Topology:
		return []engine.Event{engine.TopologySet{Topology: TopologyOf(o)}}
	case *kueue.Workload:
		return t.workloadChanged(o)
	case *kueue.ClusterQueue:
		t.ClusterQueues[o.Name] = o
		return []engine.Event{engine.ClusterQueueSet{ClusterQueue: t.ClusterQueue(o)}}
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
		return t.recountedWorkloads(t.setRuntimeClass(o),
			func(w *kueue.Workload) bool { return namesRuntimeClass(w, o.Name) })
	case *kueue.LocalQueue:
		set := engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: KeyOf(o), ClusterQueue: string(o.Spec.ClusterQueue),
			Stopped: Stopped(o.Spec.StopPolicy), Terminating: !o.DeletionTimestamp.IsZero(),
			Weight: WeightOf(o.Spec.FairSharing), Durations: durationsOf(o)}}
		Remember(&set.LocalQueue, o.Status.FairSharing)
		return []engine.Event{set}
	case *kueue.Cohort:
		return []engine.Event{engine.CohortSet{Cohort: engine.Cohort{
			Name: o.Name, Parent: string(o.Spec.ParentName), Quotas: quotasOf(o.Spec.ResourceGroups),
			Weight: WeightOf(o.Spec.FairSharing)}}}
	case *kueue.ResourceFlavor:
		return []engine.Event{engine.FlavorSet{Flavor: engine.Flavor{
			Name: o.Name, NodeLabels: o.Spec.NodeLabels, NodeTaints: o.Spec.NodeTaints, Tolerations: o.Spec.Tolerations,
			Topology: string(ptr.Deref(o.Spec.TopologyName, ""))}}}
	case *corev1.Namespace:
		return []engine.Event{engine.NamespaceSet{Name: o.Name, Labels: o.Labels}}
	}
	panic(fmt.Sprintf("no event for a %T", object)) // a watched kind without a translation
}

// Deleted returns the events for an object that was deleted.
func (t *Translator) Deleted(object client.Object) []engine.Event {
	switch o := object.(type) {
	case *corev1.Pod:
		return t.Pods.delete(o)
	case *corev1.Node:
		t.nodes.forget(o.Name)
		return []engine.Event{engine.NodeDeleted{Name: o.Name}}
	case *kueue.Topology:
		return []engine.Event{engine.TopologyDeleted{Name: o.Name}}
	case *kueue.Workload:
		return t.workloadGone(o)
	case *kueue.ClusterQueue:
		delete(t.ClusterQueues, o.Name)
		return []engine.Event{engine.ClusterQueueDeleted{Name: o.Name}}
	case *kueue.AdmissionCheck:
		delete(t.checks, o.Name)
		return t.queuesWithCheck(o.Name)
	case *corev1.LimitRange:
		return t.recountedWorkloads(t.deleteLimitRange(o.Namespace, o.Name),
			func(w *kueue.Workload) bool { return w.Namespace == o.Namespace })
	case *nodev1.RuntimeClass:
		return t.recountedWorkloads(t.deleteRuntimeClass(o.Name),
			func(w *kueue.Workload) bool { return namesRuntimeClass(w, o.Name) })
	case *kueue.LocalQueue:
		return []engine.Event{engine.LocalQueueDeleted{Key: KeyOf(o)}}
	case *kueue.Cohort:
		return []engine.Event{engine.CohortDeleted{Name: o.Name}}
	case *kueue.ResourceFlavor:
		return []engine.Event{engine.FlavorDeleted{Name: o.Name}}
	case *corev1.Namespace:
		return []engine.Event{engine.NamespaceDeleted{Name: o.Name}}
	}
	panic(fmt.Sprintf("no event for a %T", object))
}

// NextDue returns when Overdue must be called next even if no object changes, or zero if it need not be.
func (t *Translator) NextDue() time.Time { return Sooner(t.nodes.due(), t.Pods.due()) }

// Overdue returns the events for grace periods that are over at now.
func (t *Translator) Overdue(now time.Time) []engine.Event {
	var events []engine.Event
	for _, node := range t.nodes.lost(now) {
		events = append(events, engine.NodeSet{Node: node})
	}
	return append(events, t.Pods.overdue(now)...)
}

// Sooner returns the earlier of two times, where zero means never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (t *Translator) workloadChanged(w *kueue.Workload) []engine.Event {
	return append(t.runEnded(t.workloads[KeyOf(w)], w), t.workloadIs(w)...)
}

// workloadIs returns the event for what the Workload is now.
func (t *Translator) workloadIs(w *kueue.Workload) []engine.Event {
	if workload.IsFinished(w) || !w.DeletionTimestamp.IsZero() && !workload.HoldsQuota(w) {
		return t.workloadGone(w) // also one that only a finalizer still keeps: it must not be admitted any more
	}
	t.workloads[KeyOf(w)] = w
	return []engine.Event{engine.WorkloadSet{Workload: t.Workload(w)}}
}

func (t *Translator) workloadGone(w *kueue.Workload) []engine.Event {
	delete(t.workloads, KeyOf(w))
	return []engine.Event{engine.WorkloadGone{Key: KeyOf(w)}}
}

// recountedWorkloads returns the events, ordered by key, for the Workloads concerned by an object that affects how
// their requests are counted; none unless that object changed.
func (t *Translator) recountedWorkloads(changed bool, concerns func(*kueue.Workload) bool) []engine.Event {
	if !changed {
		return nil
	}
	var events []engine.Event
	for _, key := range order.SortedKeys(t.workloads) {
		if w := t.workloads[key]; concerns(w) {
			events = append(events, engine.WorkloadSet{Workload: t.Workload(w)})
		}
	}
	return events
}

// queuesWithCheck returns the events, ordered by name, for the ClusterQueues that use the check.
func (t *Translator) queuesWithCheck(check string) []engine.Event {
	var events []engine.Event
	for _, name := range slices.Sorted(maps.Keys(t.ClusterQueues)) {
		q := t.ClusterQueues[name]
		if slices.ContainsFunc(lifecycle.CheckRules(&q.Spec),
			func(r kueue.AdmissionCheckStrategyRule) bool { return string(r.Name) == check }) {
			events = append(events, engine.ClusterQueueSet{ClusterQueue: t.ClusterQueue(q)})
		}
	}
	return events
}

// KeyOf returns the engine's key of an object.
func KeyOf(object client.Object) engine.Key { return engine.Key(client.ObjectKeyFromObject(object)) }

// Workload translates a Workload for the engine.
func (t *Translator) Workload(w *kueue.Workload) engine.Workload {
	podSets, refused := t.account(w)
	code, blamed := PendingReason(w)
	return engine.Workload{
		Key: KeyOf(w),
		UID: string(w.UID), Generation: w.Generation, Version: VersionOf(w),
		Queue:         string(w.Spec.QueueName),
		Priority:      ptr.Deref(w.Spec.Priority, 0),
		QueuedAt:      t.policy.QueuedAt(w),
		Time:          timeOf(w, podSets),
		Inactive:      !workload.IsActive(w) || !w.DeletionTimestamp.IsZero(),
		BackoffReason: backoffReason(w),
		Unheld:        !workload.HoldsQuota(w) && workload.IsTrue(w, muster.UnheldCondition),
		Gated:         plain.Text(w.Annotations[kueue.AdmissionGatedByAnnotation]), // as its message has it
		PodSets:       podSets,
		Refused:       refused,
		Admission:     admissionOf(w), ReservedAt: workload.TrueSince(w, kueue.WorkloadQuotaReserved),
		AdmittedAt: workload.TrueSince(w, kueue.WorkloadAdmitted),
		Admitted:   workload.IsAdmitted(w),
		Ready:      !awaitsReadiness(w),
		Evicted:    isLeaving(w), LostNodes: LostNodes(w),
		ResizedAt:    workload.TrueSince(w, muster.ResizedCondition),
		ReportedCode: code, ReportedMessage: blamed,
	}
}

// VersionOf returns the object's resourceVersion as a number, which grows with every change.
func VersionOf(object client.Object) int64 {
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
		assignment := engine.Assignment{PodSet: string(a.Name), Count: left, Flavors: map[string]string{},
			Usage: map[string]int64{}}
		for resource, name := range a.Flavors {
			assignment.Flavors[string(resource)] = string(name)
			assignment.Usage[string(resource)] = Share(quota.FromQuantity(resource, a.ResourceUsage[resource]), left, given)
		}
		assignment.Surplus = SurplusOf(w, a)
		assignment.Places, assignment.Within = PlacesFrom(a.TopologyAssignment)
		out.PodSets = append(out.PodSets, assignment)
	}
	return out
}

// SurplusOf returns what terminating pods beyond the assignment still use, by resource; nil if there are none.
func SurplusOf(w *kueue.Workload, a *kueue.PodSetAssignment) map[string]int64 {
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

// Share returns what `pods` of the `of` pods use of an amount that all of them use together.
func Share(amount int64, pods, of int32) int64 {
	if pods >= of || of == 0 {
		return amount
	}
	return quota.Times(amount/int64(of), pods)
}
