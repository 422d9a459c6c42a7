package keptqueues

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

// volcanoQueues keeps a ClusterQueue for each Volcano Queue, the cohort that they share, and
// the Queues' status. There are few, and what one deserves the others cannot share: so all are
// looked at together.
type volcanoQueues struct {
	client   client.Client
	recorder events.EventRecorder
	// told are the Queues, by UID, of which it was told that they are not kept.
	told map[types.UID]bool
	// ignored is what it was told of Queues, by UID, that means nothing in them, unless that is nothing.
	ignored map[types.UID]string
	// untold is that there was no time, at this look, for an event.
	untold bool
}

// mayWait is a recorder that has not always time for an event, and says so: what holds is told later.
type mayWait interface {
	Tell(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) bool
}

const (
	// notKeptReason is of the event that tells that a ClusterQueue which is not the Queue's serves in its place.
	notKeptReason = "NotKept"
	// ignoredReason is of the event that tells what of a Queue means nothing.
	ignoredReason = "IgnoredInSpec"
	// keeping is the action of these events.
	keeping = "Keeping"
	// untoldPause is after how long Queues are looked at again of which there was no time to tell.
	untoldPause = 30 * time.Second
)

// AddVolcano has the manager keep Volcano's Queues, which the cluster must serve. After each start the recorder gets to hear of all of
// them again: it is to be one that passes on as many events as there is time for, and says of which there was none.
func AddVolcano(mgr ctrl.Manager, recorder events.EventRecorder) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: volcanoCohort}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("volcano-queues").
		Watches(&scheduling.Queue{}, all).
		Watches(&kueue.ClusterQueue{}, all).
		Watches(&kueue.Cohort{}, all).
		Complete(&volcanoQueues{client: mgr.GetClient(), recorder: recorder, told: map[types.UID]bool{}, ignored: map[types.UID]string{}})
	if err != nil {
		return fmt.Errorf("adding the keeper of Volcano Queues: %w", err)
	}
	return nil
}

// Reconcile brings ClusterQueues, the cohort and the Queues' status up to date.
func (v *volcanoQueues) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var queues scheduling.QueueList
	if err := v.client.List(ctx, &queues); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Volcano Queues: %w", err)
	}
	v.forgetGone(queues.Items)
	v.untold = false
	var list kueue.ClusterQueueList
	if err := v.client.List(ctx, &list); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing ClusterQueues: %w", err)
	}
	there := map[string]*kueue.ClusterQueue{}
	for i := range list.Items {
		there[list.Items[i].Name] = &list.Items[i]
	}
	if len(queues.Items) == 0 {
		return ctrl.Result{}, v.dropCohort(ctx)
	}
	var cluster corev1.ResourceList
	if byNodes := there[muster.DefaultQueue]; byNodes != nil {
		cluster = quotaOfNodes(byNodes)
	}
	ended, err := v.ended(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var kept []*kueue.ClusterQueue
	var errs []error
	for i := range queues.Items {
		q := &queues.Items[i]
		if !q.DeletionTimestamp.IsZero() {
			continue
		}
		if found := there[q.Name]; found == nil || metav1.IsControlledBy(found, q) {
			wanted := keptQueue(q, cluster)
			kept = append(kept, wanted)
			errs = append(errs, v.keep(ctx, found, wanted))
			delete(v.told, q.UID)
			v.tellIgnored(q)
		} else {
			v.tellNotKept(q, found)
		}
		errs = append(errs, v.report(ctx, q, volcanoStatus(q.Status, there[q.Name], ended[q.Name])))
	}
	errs = append(errs, v.keepCohort(ctx, sharedQuota(cluster, kept)))
	if err := withoutConflicts(errs); err != nil || !v.untold {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: untoldPause}, nil
}

// withoutConflicts are errors but for those that the watch mends: it brings the change, and with it the next try.
func withoutConflicts(errs []error) error {
	var out []error
	for _, err := range errs {
		if err != nil && !apierrors.IsConflict(err) {
			out = append(out, err)
		}
	}
	return errors.Join(out...)
}

// keep makes the ClusterQueue, or changes what follows from the Queue: what people say of it beyond that is theirs.
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

// tellNotKept tells once that what the Queue says means nothing, unless that is nothing but what every Queue has.
func (v *volcanoQueues) tellNotKept(q *scheduling.Queue, instead *kueue.ClusterQueue) {
	if owner := metav1.GetControllerOf(instead); owner != nil && owner.Kind == "Queue" && owner.Name == q.Name {
		return // it was kept for the Queue of this name that was there before, and goes with that
	}
	if v.told[q.UID] || !instead.DeletionTimestamp.IsZero() || len(q.Spec.Capability)+len(q.Spec.Deserved)+len(q.Spec.Guarantee.Resource) == 0 {
		return
	}
	if v.tell(q, notKeptReason, fmt.Sprintf(
		"A ClusterQueue %s was there before and serves in place of this Queue: its quota counts, and capability, deserved and guarantee of the Queue mean nothing", q.Name)) {
		v.told[q.UID] = true
	}
}

// tellIgnored tells once what the Queue says that means nothing.
func (v *volcanoQueues) tellIgnored(q *scheduling.Queue) {
	message := ""
	if ignored := ignoredOf(&q.Spec); len(ignored) > 0 {
		message = "Ignored in the spec: " + strings.Join(ignored, "; ")
	}
	switch message {
	case v.ignored[q.UID]:
	case "":
		delete(v.ignored, q.UID)
	default:
		if v.tell(q, ignoredReason, message) {
			v.ignored[q.UID] = message
		}
	}
}

// tell warns of a Queue, and reports whether there was time for it.
func (v *volcanoQueues) tell(q *scheduling.Queue, reason, message string) bool {
	r, ok := v.recorder.(mayWait)
	if !ok {
		v.recorder.Eventf(q, nil, corev1.EventTypeWarning, reason, keeping, "%s", message)
		return true
	}
	told := r.Tell(q, nil, corev1.EventTypeWarning, reason, keeping, "%s", message)
	v.untold = v.untold || !told
	return told
}

// forgetGone drops what is known of Queues that are not there any more.
func (v *volcanoQueues) forgetGone(queues []scheduling.Queue) {
	there := sets.New[types.UID]()
	for i := range queues {
		there.Insert(queues[i].UID)
	}
	maps.DeleteFunc(v.told, func(uid types.UID, _ bool) bool { return !there.Has(uid) })
	maps.DeleteFunc(v.ignored, func(uid types.UID, _ string) bool { return !there.Has(uid) })
}

// keepCohort keeps what the Queues share, unless somebody else has made a cohort of that name.
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

// dropCohort deletes the cohort that no Queue shares any more.
func (v *volcanoQueues) dropCohort(ctx context.Context) error {
	var seen kueue.Cohort
	err := v.client.Get(ctx, client.ObjectKey{Name: volcanoCohort}, &seen)
	if err != nil || seen.Labels[muster.FollowsNodesLabel] == "" || !seen.DeletionTimestamp.IsZero() {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(v.client.Delete(ctx, &seen))
}

// report writes the status of a Queue if it says something new.
func (v *volcanoQueues) report(ctx context.Context, q *scheduling.Queue, status scheduling.QueueStatus) error {
	if equality.Semantic.DeepEqual(q.Status, status) {
		return nil
	}
	desired := q.DeepCopy()
	desired.Status = status
	return client.IgnoreNotFound(v.client.Status().Patch(ctx, desired, client.MergeFromWithOptions(q, client.MergeFromWithOptimisticLock{})))
}

// ended counts, by ClusterQueue, the Workloads that have ended in it.
func (v *volcanoQueues) ended(ctx context.Context) (map[string]int32, error) {
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
