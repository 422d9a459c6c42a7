package managedqueues

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// volcanoQueues keeps a ClusterQueue for each Volcano Queue, the cohort of these, and the status of the Queues. There
// are few Queues, and what one of them deserves is not shared with the others, so they are all reconciled together.
type volcanoQueues struct {
	client   client.Client
	recorder events.EventRecorder
	// notKeptReported are the UIDs of the Queues whose NotKept event was recorded.
	notKeptReported map[types.UID]bool
	// ignoredReported is the message of the IgnoredInSpec event that was recorded for a Queue, by UID.
	ignoredReported map[types.UID]string
	// eventsPending is set if this reconcile had an event to record that the recorder did not accept.
	eventsPending bool
}

// budgetedRecorder is a recorder that reports whether it had budget to record an event, so that a lasting fact can be
// reported later.
type budgetedRecorder interface {
	TryEventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) bool
}

const (
	// notKeptReason is the reason of the event that reports that another ClusterQueue serves in place of the Queue's
	// own.
	notKeptReason = "NotKept"
	// ignoredReason is the reason of the event that reports which fields of a Queue have no effect.
	ignoredReason = "IgnoredInSpec"
	// eventAction is the action of these events.
	eventAction = "Keeping"
	// eventRetryInterval is the delay before Queues are reconciled again for an event that the recorder did not accept.
	eventRetryInterval = 30 * time.Second
)

// AddVolcano adds the controller of Volcano Queues to the manager; the cluster must serve their API. After each start
// it records the events about all Queues again, so the recorder should be one with a budget, such as
// Background.Recorder.
func AddVolcano(mgr ctrl.Manager, recorder events.EventRecorder) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: volcanoCohort}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("volcano-queues").
		Watches(&scheduling.Queue{}, all).
		Watches(&kueue.ClusterQueue{}, all).
		Watches(&kueue.Cohort{}, all).
		Complete(&volcanoQueues{client: mgr.GetClient(), recorder: recorder, notKeptReported: map[types.UID]bool{}, ignoredReported: map[types.UID]string{}})
	if err != nil {
		return fmt.Errorf("adding the keeper of Volcano Queues: %w", err)
	}
	return nil
}

// Reconcile updates the ClusterQueues, the cohort and the Queues' status.
func (v *volcanoQueues) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var queues scheduling.QueueList
	if err := v.client.List(ctx, &queues); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Volcano Queues: %w", err)
	}
	v.forgetGone(queues.Items)
	v.eventsPending = false
	if len(queues.Items) == 0 {
		return ctrl.Result{}, v.dropCohort(ctx)
	}
	there, err := v.clusterQueues(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var cluster corev1.ResourceList
	if byNodes := there[muster.DefaultQueue]; byNodes != nil {
		cluster = quotaOfNodes(byNodes)
	}
	ended, err := v.finishedWorkloads(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	kept := map[string]*kueue.ClusterQueue{}
	var errs []error
	for i := range queues.Items {
		q := &queues.Items[i]
		if !q.DeletionTimestamp.IsZero() {
			continue
		}
		if found := there[q.Name]; found == nil || metav1.IsControlledBy(found, q) {
			wanted := clusterQueueFor(q, cluster)
			kept[q.Name] = wanted
			errs = append(errs, v.keep(ctx, found, wanted))
			delete(v.notKeptReported, q.UID)
			v.reportIgnored(q)
		} else {
			v.reportNotKept(q, found)
		}
		errs = append(errs, v.writeStatus(ctx, q, volcanoStatus(q.Status, there[q.Name], ended[q.Name])))
	}
	for name, found := range there {
		if kept[name] == nil && isKept(found) {
			kept[name] = found // its Queue is gone, but its workloads run on with its quota
		}
	}
	errs = append(errs, v.keepCohort(ctx, sharedQuota(cluster, kept)))
	if err := withoutConflicts(errs); err != nil || !v.eventsPending {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: eventRetryInterval}, nil
}

// clusterQueues returns all ClusterQueues by name, which must not be changed: each change of the status of one, which
// there may be thousands of, leads here, and to copy them all would cost more than all else.
func (v *volcanoQueues) clusterQueues(ctx context.Context) (map[string]*kueue.ClusterQueue, error) {
	var list kueue.ClusterQueueList
	if err := v.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ClusterQueues: %w", err)
	}
	out := make(map[string]*kueue.ClusterQueue, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}

// withoutConflicts joins the errors other than conflicts, after which the watch triggers the next attempt.
func withoutConflicts(errs []error) error {
	var out []error
	for _, err := range errs {
		if err != nil && !apierrors.IsConflict(err) {
			out = append(out, err)
		}
	}
	return errors.Join(out...)
}

// keep creates the ClusterQueue, or updates the fields that follow from the Queue; users may set all others.
func (v *volcanoQueues) keep(ctx context.Context, seen, wanted *kueue.ClusterQueue) error {
	if seen == nil {
		return client.IgnoreAlreadyExists(v.client.Create(ctx, wanted))
	}
	desired := seen.DeepCopy()
	desired.Spec.Cohort, desired.Spec.QueueingStrategy, desired.Spec.ResourceGroups = wanted.Spec.Cohort, wanted.Spec.QueueingStrategy, wanted.Spec.ResourceGroups
	desired.Spec.FairSharing = wanted.Spec.FairSharing
	if desired.Spec.Preemption == nil {
		desired.Spec.Preemption = &kueue.ClusterQueuePreemption{}
	}
	desired.Spec.Preemption.ReclaimWithinCohort = wanted.Spec.Preemption.ReclaimWithinCohort
	desired.Spec.Preemption.WithinClusterQueue = wanted.Spec.Preemption.WithinClusterQueue
	for _, annotation := range []string{muster.QueuePriorityAnnotation, muster.PreemptibleAnnotation} {
		if value := wanted.Annotations[annotation]; value != "" {
			metav1.SetMetaDataAnnotation(&desired.ObjectMeta, annotation, value)
		} else {
			delete(desired.Annotations, annotation)
		}
	}
	if equality.Semantic.DeepEqual(seen.Spec, desired.Spec) && equality.Semantic.DeepEqual(seen.Annotations, desired.Annotations) {
		return nil
	}
	return v.client.Patch(ctx, desired, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}))
}

// isKept reports whether the ClusterQueue was made for a Queue.
func isKept(q *kueue.ClusterQueue) bool {
	owner := metav1.GetControllerOf(q)
	return owner != nil && owner.APIVersion == scheduling.GroupVersion.String() && owner.Kind == volcanoKind.Kind
}

// reportNotKept records, once, that the Queue's spec has no effect, unless it says no more than every Queue's.
func (v *volcanoQueues) reportNotKept(q *scheduling.Queue, instead *kueue.ClusterQueue) {
	if isKept(instead) {
		return // it was kept for an earlier Queue of this name, and is garbage-collected with that
	}
	if v.notKeptReported[q.UID] || !instead.DeletionTimestamp.IsZero() || len(q.Spec.Capability)+len(q.Spec.Deserved)+len(q.Spec.Guarantee.Resource) == 0 {
		return
	}
	if v.warn(q, notKeptReason, fmt.Sprintf(
		"A ClusterQueue %s existed before and serves in place of this Queue: its quota applies, and capability, deserved and guarantee of the Queue have no effect", q.Name)) {
		v.notKeptReported[q.UID] = true
	}
}

// reportIgnored records, once, which fields of the Queue's spec have no effect.
func (v *volcanoQueues) reportIgnored(q *scheduling.Queue) {
	message := ""
	if ignored := ignoredOf(&q.Spec); len(ignored) > 0 {
		message = "Ignored in the spec: " + strings.Join(ignored, "; ")
	}
	switch message {
	case v.ignoredReported[q.UID]:
	case "":
		delete(v.ignoredReported, q.UID)
	default:
		if v.warn(q, ignoredReason, message) {
			v.ignoredReported[q.UID] = message
		}
	}
}

// warn records a warning about a Queue, and reports whether the recorder accepted it.
func (v *volcanoQueues) warn(q *scheduling.Queue, reason, message string) bool {
	r, ok := v.recorder.(budgetedRecorder)
	if !ok {
		v.recorder.Eventf(q, nil, corev1.EventTypeWarning, reason, eventAction, "%s", message)
		return true
	}
	recorded := r.TryEventf(q, nil, corev1.EventTypeWarning, reason, eventAction, "%s", message)
	v.eventsPending = v.eventsPending || !recorded
	return recorded
}

// forgetGone drops the state of deleted Queues.
func (v *volcanoQueues) forgetGone(queues []scheduling.Queue) {
	there := sets.New[types.UID]()
	for i := range queues {
		there.Insert(queues[i].UID)
	}
	maps.DeleteFunc(v.notKeptReported, func(uid types.UID, _ bool) bool { return !there.Has(uid) })
	maps.DeleteFunc(v.ignoredReported, func(uid types.UID, _ string) bool { return !there.Has(uid) })
}

// keepCohort creates or updates the cohort of the Queues, unless a user has made a cohort of that name.
func (v *volcanoQueues) keepCohort(ctx context.Context, quota corev1.ResourceList) error {
	var seen kueue.Cohort
	err := v.client.Get(ctx, client.ObjectKey{Name: volcanoCohort}, &seen)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	var groups []kueue.ResourceGroup
	if len(quota) > 0 {
		groups = []kueue.ResourceGroup{groupOf(quota)}
	}
	if err != nil {
		cohort := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: volcanoCohort, Labels: map[string]string{muster.FollowsNodesLabel: "true"}}}
		cohort.Spec.ResourceGroups = groups
		return client.IgnoreAlreadyExists(v.client.Create(ctx, cohort))
	}
	if seen.Labels[muster.FollowsNodesLabel] == "" || equality.Semantic.DeepEqual(seen.Spec.ResourceGroups, groups) {
		return nil
	}
	desired := seen.DeepCopy()
	desired.Spec.ResourceGroups = groups
	return v.client.Patch(ctx, desired, client.MergeFromWithOptions(&seen, client.MergeFromWithOptimisticLock{}))
}

// dropCohort deletes the cohort when there are no Queues any more.
func (v *volcanoQueues) dropCohort(ctx context.Context) error {
	var seen kueue.Cohort
	err := v.client.Get(ctx, client.ObjectKey{Name: volcanoCohort}, &seen)
	if err != nil || seen.Labels[muster.FollowsNodesLabel] == "" || !seen.DeletionTimestamp.IsZero() {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(v.client.Delete(ctx, &seen))
}

// writeStatus writes the status of a Queue if it has changed.
func (v *volcanoQueues) writeStatus(ctx context.Context, q *scheduling.Queue, status scheduling.QueueStatus) error {
	if equality.Semantic.DeepEqual(q.Status, status) {
		return nil
	}
	desired := q.DeepCopy()
	desired.Status = status
	return client.IgnoreNotFound(v.client.Status().Patch(ctx, desired, client.MergeFromWithOptions(q, client.MergeFromWithOptimisticLock{})))
}

// finishedWorkloads returns the number of finished Workloads by ClusterQueue.
func (v *volcanoQueues) finishedWorkloads(ctx context.Context) (map[string]int32, error) {
	var list kueue.WorkloadList
	if err := v.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Workloads: %w", err)
	}
	out := map[string]int32{}
	for i := range list.Items {
		if w := &list.Items[i]; workload.IsFinished(w) && w.Status.Admission != nil {
			out[string(w.Status.Admission.ClusterQueue)]++
		}
	}
	return out, nil
}
