package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs/controller/waiting"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/workload"
)

// A job that is deleted with the propagation policy Orphan leaves its pods and its Workload behind, without an owner.
// The pods run on, so the Workload keeps its quota until they have ended, and with them the Jobs that a JobSet has
// left: these create pods in place of failed ones. It can be evicted like any other: the pods are then deleted, and
// Jobs that would replace them are suspended.

// orphans reconciles the Workloads that were orphaned while they held quota. The zero value of since is ready for use.
type orphans struct {
	client   client.Client
	live     client.Reader
	executor *write.Executor
	clock    clock.PassiveClock
	apis     []Served
	// since is when each Workload was first seen orphaned: the longer its pods run, the less often they are listed.
	since waiting.Memory[metav1.Time]
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
		o.since.Forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !isOrphanInUse(&w) {
		o.since.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	pods, err := o.pods(ctx, &w)
	if err != nil {
		return ctrl.Result{}, err
	}
	batch, evicted, waits := write.Batch{}, workload.IsEvicted(&w), len(pods) > 0
	if evicted || !waits {
		left, err := o.jobsLeft(ctx, &w)
		if err != nil {
			return ctrl.Result{}, err
		}
		if waits = slices.ContainsFunc(left, mayCreatePods); evicted {
			batch.Writes = stopPods(pods, left)
			waits = len(madeBefore(&w, pods, left)) > 0 || stopsJobs(batch.Writes)
		}
	}
	if !waits {
		batch.Add(endedOrphan(&w, metav1.NewTime(o.clock.Now())))
	}
	if err := o.executor.Run(ctx, &w, batch); err != nil && !write.IsOvertaken(err) && !write.IsConflict(err) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: o.poll(&w)}, nil
}

// poll returns after how long to look again.
func (o *orphans) poll(w *kueue.Workload) time.Duration {
	since := o.since.Get(w)
	if since.IsZero() {
		since = metav1.NewTime(o.clock.Now())
		o.since.Set(w, since)
	}
	return nextPoll(o.clock.Since(since.Time))
}

// endedOrphan returns the write that gives back the quota of the Workload, whose pods are gone.
func endedOrphan(w *kueue.Workload, now metav1.Time) write.Write {
	if free := workloads.WithoutFinalizer(w, false); free != nil {
		return write.Change(w, free)
	}
	ended := w.DeepCopy()
	workloads.Finish(ended, kueue.WorkloadFinishedReasonOwnerNotFound, workload.OrphanedMessage, now.Time)
	return write.ChangeStatus(w, ended)
}

// selectors returns the labels by which each API selects the pods of the Workload's former job, if that job may have
// been one of the API.
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

// stopsJobs reports whether the writes suspend a Job, which may have created pods meanwhile.
func stopsJobs(writes []write.Write) bool {
	return slices.ContainsFunc(writes, func(w write.Write) bool { return w.Verb() == write.VerbChange })
}

// jobsLeft returns the Jobs that the Workload's former job has left. Their pods have its labels, whatever labels the
// Jobs themselves have by now. A Job of another controller is left alone, unless it has the mark of a Job that the
// operator created for a queued job: users can set labels and owner references, but not this mark. The Jobs are shared
// with the cache and must not be modified.
func (o *orphans) jobsLeft(ctx context.Context, w *kueue.Workload) (left []*batchv1.Job, err error) {
	var all batchv1.JobList
	if err := o.client.List(ctx, &all, client.InNamespace(w.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Jobs that the job of Workload %s has left: %w",
			client.ObjectKeyFromObject(w), err)
	}
	for job := range pointers.To(all.Items) {
		if metav1.GetControllerOfNoCopy(job) != nil && job.Annotations[muster.QueuedAnnotation] != muster.QueuedByOwner {
			continue
		}
		for _, of := range o.selectors(w) {
			selector := labels.SelectorFromSet(labels.Set(of))
			if selector.Matches(labels.Set(job.Labels)) || selector.Matches(labels.Set(job.Spec.Template.Labels)) {
				left = append(left, job)
				break
			}
		}
	}
	return left, nil
}

// madeBefore returns the pods that the former job may have created, of an evicted Workload: pods that were created
// before its eviction, and pods of Jobs that the former job has left. Another controller, such as a ReplicaSet that has
// adopted some, creates pods anew from its own template, which may have the same labels. These are deleted, but not
// waited for: the quota would never be given back.
func madeBefore(w *kueue.Workload, pods []metav1.PartialObjectMetadata,
	left []*batchv1.Job) []metav1.PartialObjectMetadata {
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted).LastTransitionTime
	return slices.DeleteFunc(pods, func(pod metav1.PartialObjectMetadata) bool {
		return evicted.Before(&pod.CreationTimestamp) && !slices.ContainsFunc(left, func(job *batchv1.Job) bool {
			return metav1.IsControlledBy(&pod, job)
		})
	})
}
