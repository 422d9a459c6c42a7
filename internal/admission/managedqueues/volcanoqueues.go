package managedqueues

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
		Complete(&volcanoQueues{client: mgr.GetClient(), recorder: recorder, notKeptReported: map[types.UID]bool{},
			ignoredReported: map[types.UID]string{}})
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
		return ctrl.Result{}, v.dropCohorts(ctx)
	}
	there, err := v.clusterQueues(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	ended, err := v.finishedWorkloads(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	errs := v.keepAll(ctx, queues.Items, there)
	for i := range queues.Items {
		if q := &queues.Items[i]; q.DeletionTimestamp.IsZero() {
			errs = append(errs, v.writeStatus(ctx, q, volcanoStatus(q.Status, there[q.Name], ended[q.Name])))
		}
	}
	if err := withoutConflicts(errs); err != nil || !v.eventsPending {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: eventRetryInterval}, nil
}

// keepAll keeps the ClusterQueues and the Cohorts of the Queues; there has all ClusterQueues by name.
func (v *volcanoQueues) keepAll(ctx context.Context, queues []scheduling.Queue,
	there map[string]*kueue.ClusterQueue) (errs []error) {
	var cluster corev1.ResourceList
	if byNodes := there[muster.DefaultQueue]; byNodes != nil {
		cluster = quotaOfNodes(byNodes)
	}
	all, served := map[string]*scheduling.Queue{}, map[string]*scheduling.Queue{}
	for i := range queues {
		q := &queues[i]
		if !q.DeletionTimestamp.IsZero() {
			continue
		}
		boundQuantities(q)
		all[q.Name] = q
		if found := there[q.Name]; found == nil || metav1.IsControlledBy(found, q) {
			served[q.Name] = q
		} else {
			v.reportNotKept(q, found)
		}
	}
	tree := nest(all, served)
	cohorts, kept := tree.cohorts(all), map[string]*kueue.ClusterQueue{}
	for _, name := range slices.Sorted(maps.Keys(served)) {
		q := served[name]
		kept[name] = tree.clusterQueue(q, cluster)
		delete(v.notKeptReported, q.UID)
		v.reportIgnored(q, tree.ignored[name])
	}
	for name, found := range there {
		if kept[name] == nil && isKept(found) {
			kept[name] = found // its Queue is gone, but its workloads run on with its quota
		}
	}
	// The Cohorts come first: a ClusterQueue in one that does not exist could borrow from no other.
	errs = append(errs, v.keepCohort(ctx, rootCohort(sharedQuota(cluster, kept, cohorts))))
	for _, name := range slices.Sorted(maps.Keys(cohorts)) {
		errs = append(errs, v.keepCohort(ctx, cohorts[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(served)) {
		errs = append(errs, v.keep(ctx, there[name], kept[name]))
	}
	return append(errs, v.dropUnusedCohorts(ctx, cohorts, kept))
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
	desired.Spec.Cohort, desired.Spec.QueueingStrategy, desired.Spec.ResourceGroups = wanted.Spec.Cohort,
		wanted.Spec.QueueingStrategy, wanted.Spec.ResourceGroups
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
	if equality.Semantic.DeepEqual(seen.Spec, desired.Spec) &&
		equality.Semantic.DeepEqual(seen.Annotations, desired.Annotations) {
		return nil
	}
	return v.client.Patch(ctx, desired, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}))
}

// isKept reports whether the ClusterQueue, or the Cohort, was made for a Queue.
func isKept(made client.Object) bool {
	owner := metav1.GetControllerOf(made)
	return owner != nil && owner.APIVersion == scheduling.GroupVersion.String() && owner.Kind == volcanoKind.Kind
}

// reportNotKept records, once, that the Queue's spec has no effect, unless it says no more than every Queue's.
func (v *volcanoQueues) reportNotKept(q *scheduling.Queue, instead *kueue.ClusterQueue) {
	if isKept(instead) {
		return // it was kept for an earlier Queue of this name, and is garbage-collected with that
	}
	if v.notKeptReported[q.UID] || !instead.DeletionTimestamp.IsZero() ||
		len(q.Spec.Capability)+len(q.Spec.Deserved)+len(q.Spec.Guarantee.Resource) == 0 {
		return
	}
	if v.warn(q, notKeptReason, fmt.Sprintf(
		"A ClusterQueue %s existed before and serves in place of this Queue: its quota applies, and capability, deserved and guarantee of the Queue have no effect", q.Name)) {
		v.notKeptReported[q.UID] = true
	}
}

// reportIgnored records, once, which fields of the Queue's spec have no effect. parent says why its parent has none.
func (v *volcanoQueues) reportIgnored(q *scheduling.Queue, parent string) {
	message := ""
	if ignored := ignoredOf(&q.Spec, parent); len(ignored) > 0 {
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

// rootCohort returns the cohort of all Queues, with what they share.
func rootCohort(quota corev1.ResourceList) *kueue.Cohort {
	out := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: volcanoCohort,
		Labels: map[string]string{muster.FollowsNodesLabel: "true"}}}
	if len(quota) > 0 {
		out.Spec.ResourceGroups = []kueue.ResourceGroup{groupOf(quota)}
	}
	return out
}

// keepCohort creates or updates a cohort, unless a user has made one of that name.
func (v *volcanoQueues) keepCohort(ctx context.Context, wanted *kueue.Cohort) error {
	var seen kueue.Cohort
	err := v.client.Get(ctx, client.ObjectKeyFromObject(wanted), &seen)
	switch {
	case apierrors.IsNotFound(err):
		return client.IgnoreAlreadyExists(v.client.Create(ctx, wanted))
	case err != nil:
		return err
	case seen.Labels[muster.FollowsNodesLabel] == "":
		return nil
	}
	desired := seen.DeepCopy()
	desired.Spec.ResourceGroups = wanted.Spec.ResourceGroups
	if len(wanted.OwnerReferences) > 0 { // users may set all else of the cohort of all Queues
		desired.Spec.ParentName, desired.Spec.FairSharing, desired.OwnerReferences = wanted.Spec.ParentName,
			wanted.Spec.FairSharing, wanted.OwnerReferences
	}
	if equality.Semantic.DeepEqual(seen.Spec, desired.Spec) &&
		equality.Semantic.DeepEqual(seen.OwnerReferences, desired.OwnerReferences) {
		return nil
	}
	return v.client.Patch(ctx, desired, client.MergeFromWithOptions(&seen, client.MergeFromWithOptimisticLock{}))
}

// dropUnusedCohorts deletes the Cohorts of Queues that no Queue is below any more, once no ClusterQueue is in them.
func (v *volcanoQueues) dropUnusedCohorts(ctx context.Context, wanted map[string]*kueue.Cohort,
	queues map[string]*kueue.ClusterQueue) error {
	used := sets.New(volcanoCohort)
	for name, cohort := range wanted {
		used.Insert(name, string(cohort.Spec.ParentName))
	}
	for _, q := range queues {
		used.Insert(string(q.Spec.Cohort))
	}
	return v.deleteCohorts(ctx, func(cohort *kueue.Cohort) bool { return !used.Has(cohort.Name) && isOfQueue(cohort) })
}

// dropCohorts deletes the cohorts when there are no Queues any more.
func (v *volcanoQueues) dropCohorts(ctx context.Context) error {
	return v.deleteCohorts(ctx, func(cohort *kueue.Cohort) bool {
		return cohort.Name == volcanoCohort && cohort.Labels[muster.FollowsNodesLabel] != "" || isOfQueue(cohort)
	})
}

// isOfQueue reports whether the Cohort was made for a Queue with others below it.
func isOfQueue(cohort *kueue.Cohort) bool {
	return isKept(cohort) && cohort.Labels[muster.FollowsNodesLabel] != ""
}

// deleteCohorts deletes the Cohorts for which which is true.
func (v *volcanoQueues) deleteCohorts(ctx context.Context, which func(*kueue.Cohort) bool) error {
	var list kueue.CohortList
	if err := v.client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing Cohorts: %w", err)
	}
	var errs []error
	for i := range list.Items {
		if cohort := &list.Items[i]; cohort.DeletionTimestamp.IsZero() && which(cohort) {
			errs = append(errs, client.IgnoreNotFound(v.client.Delete(ctx, cohort)))
		}
	}
	return errors.Join(errs...)
}

// writeStatus writes the status of a Queue if it has changed.
func (v *volcanoQueues) writeStatus(ctx context.Context, q *scheduling.Queue, status scheduling.QueueStatus) error {
	if equality.Semantic.DeepEqual(q.Status, status) {
		return nil
	}
	desired := q.DeepCopy()
	desired.Status = status
	return client.IgnoreNotFound(v.client.Status().Patch(ctx, desired,
		client.MergeFromWithOptions(q, client.MergeFromWithOptimisticLock{})))
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
