package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// A job that is deleted with the propagation policy Orphan leaves its pods and its Workload behind, without an owner. The
// pods run on, so the Workload keeps its quota until they have ended. It can be evicted like any other: the pods are then
// deleted, and Jobs that would replace them are suspended.

// orphans reconciles the Workloads that were orphaned while they held quota. The zero value of since is ready for use.
type orphans struct {
	client   client.Client
	live     client.Reader
	executor *Executor
	clock    clock.PassiveClock
	apis     []Served
	// since is when each Workload was first seen orphaned: the longer its pods run, the less often they are listed.
	since byJob[metav1.Time]
}

// addTo adds its controller to the manager.
func (o *orphans) addTo(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("orphaned-workloads").
		For(&kueue.Workload{}, builder.WithPredicates(predicate.NewPredicateFuncs(isOrphanInUse))).
		Complete(o)
	if err != nil {
		return fmt.Errorf("adding the controller of orphaned Workloads: %w", err)
	}
	return nil
}

// isOrphanInUse reports whether the object is an orphaned Workload that holds quota.
func isOrphanInUse(object client.Object) bool {
	w, is := object.(*kueue.Workload)
	return is && workload.IsOrphaned(w) && workload.HoldsQuota(w) && !workload.IsFinished(w)
}

// Reconcile finishes the Workload once no pod of its job is left, and stops the pods of one that is evicted.
func (o *orphans) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w kueue.Workload
	if err := o.client.Get(ctx, req.NamespacedName, &w); err != nil {
		o.since.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !isOrphanInUse(&w) {
		o.since.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	pods, err := o.pods(ctx, &w)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := Plan{}
	switch {
	case len(pods) == 0:
		plan.Writes = []Write{endedOrphan(&w, metav1.NewTime(o.clock.Now()))}
	case workload.IsEvicted(&w):
		if plan.Writes, err = o.stop(ctx, &w, pods); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := o.executor.Run(ctx, &w, plan); err != nil && !isOvertaken(err) && !isConflict(err) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: o.poll(&w)}, nil
}

// poll returns after how long to look again.
func (o *orphans) poll(w *kueue.Workload) time.Duration {
	since := o.since.get(w)
	if since.IsZero() {
		since = metav1.NewTime(o.clock.Now())
		o.since.set(w, since)
	}
	return nextPoll(o.clock.Since(since.Time))
}

// endedOrphan returns the write that gives back the quota of the Workload, whose pods are gone.
func endedOrphan(w *kueue.Workload, now metav1.Time) Write {
	if free := withoutFinalizer(w, false); free != nil {
		return Change(w, free)
	}
	ended := w.DeepCopy()
	finish(ended, kueue.WorkloadFinishedReasonOwnerNotFound, workload.OrphanedMessage, now.Time)
	return ChangeStatus(w, ended)
}

// selectors returns the labels by which each API selects the pods of the Workload's former job, of those APIs whose job
// that may have been.
func (o *orphans) selectors(w *kueue.Workload) (out []client.MatchingLabels) {
	uid := types.UID(w.Labels[kueue.JobUIDLabel])
	for _, api := range o.apis {
		if strings.HasPrefix(w.Name, strings.ToLower(api.kind().Kind)+"-") {
			out = append(out, api.podLabels(uid))
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, api := range o.apis { // somebody else has named the Workload
		out = append(out, api.podLabels(uid))
	}
	return out
}

// pods lists, from the API server, the pods of the Workload's former job that have not ended.
func (o *orphans) pods(ctx context.Context, w *kueue.Workload) (out []metav1.PartialObjectMetadata, err error) {
	for _, labels := range o.selectors(w) {
		pods, err := runningPods(ctx, o.live, w, labels)
		if err != nil {
			return nil, err
		}
		out = append(out, pods...)
	}
	return out, nil
}

// stop returns the writes that delete the pods. Jobs that the former job has left would replace the pods, and are
// suspended first.
func (o *orphans) stop(ctx context.Context, w *kueue.Workload, pods []metav1.PartialObjectMetadata) (writes []Write, err error) {
	for _, labels := range o.selectors(w) {
		var left batchv1.JobList
		if err := o.client.List(ctx, &left, client.InNamespace(w.Namespace), labels); err != nil {
			return nil, fmt.Errorf("listing the Jobs that the job of Workload %s has left: %w", client.ObjectKeyFromObject(w), err)
		}
		for i := range left.Items {
			job := &left.Items[i]
			if metav1.GetControllerOfNoCopy(job) == nil && !ptr.Deref(job.Spec.Suspend, false) {
				held := job.DeepCopy()
				held.Spec.Suspend = ptr.To(true)
				writes = append(writes, Change(job, held).Marked(muster.QueuedByOwner))
			}
		}
	}
	if len(writes) > 0 {
		return writes, nil // the Job controller deletes the pods
	}
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp.IsZero() && metav1.GetControllerOfNoCopy(pod) == nil {
			writes = append(writes, Delete(&corev1.Pod{ObjectMeta: pod.ObjectMeta}, metav1.DeletePropagationBackground))
		}
	}
	return writes, nil
}
