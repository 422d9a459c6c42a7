package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/workload"
)

// ownerIndex finds Workloads by the name of their job, for jobs that are gone and whose UID is no longer known.
const ownerIndex = "metadata.controller.name"

// podsLeftPoll and longestPoll bound how often the pods of a deleted job are listed until they are gone. Few jobs are
// deleted while they run, so that a watch of all pods would not pay; but pods on a dead node stay for good, and pods
// that another controller runs now may run for weeks.
const (
	podsLeftPoll = 2 * time.Second
	longestPoll  = time.Minute
)

// nextPoll returns when to list again the pods that still run this long after the deletion: so that their quota is free
// an eighth of that time later at most, within bounds.
func nextPoll(since time.Duration) time.Duration {
	return min(max(since/8, podsLeftPoll), longestPoll)
}

// ownerKeys returns the ownerIndex keys of a Workload.
func ownerKeys(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return nil
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return nil
	}
	return []string{ownerKey(gv.WithKind(owner.Kind).GroupKind(), owner.Name)}
}

func ownerKey(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

// releaseWorkloads removes the finalizer of each deleted Workload of deleted jobs with this name, once the pods that
// its quota was for are gone. It returns when to check again if some are not, 0 for never. The Workloads of a job that
// still exists are left to its plan.
func (r *reconciler[T]) releaseWorkloads(ctx context.Context, name types.NamespacedName, job T,
	lives bool) (time.Duration, error) {
	list, err := r.read.workloadsOf(ctx, r.api.kind(), name)
	if err != nil {
		return 0, err
	}
	var (
		writes []write.Write
		errs   []error
		wait   time.Duration
	)
	for w := range pointers.To(list) {
		if w.DeletionTimestamp.IsZero() || lives && metav1.IsControlledBy(w, job) {
			continue
		}
		left, err := r.read.podsLeft(ctx, w)
		switch {
		case err != nil:
			errs = append(errs, err)
		case left:
			wait = earlierRetry(wait, nextPoll(r.clock.Since(w.DeletionTimestamp.Time)))
		default:
			if free := workloads.WithoutFinalizer(w, false); free != nil {
				writes = append(writes, write.Change(w, free))
			}
		}
	}
	if err := r.executor.Run(ctx, job, write.Batch{Writes: writes}); err != nil && !write.IsOvertaken(err) {
		errs = append(errs, err)
	}
	return wait, errors.Join(errs...)
}

// workloadsOf returns the Workloads of all jobs of the kind that have or had this name. They are shared with the cache
// and must not be modified.
func (r *reader[T]) workloadsOf(ctx context.Context, kind schema.GroupKind,
	name types.NamespacedName) ([]kueue.Workload, error) {
	var list kueue.WorkloadList
	if err := r.client.List(ctx, &list, client.InNamespace(name.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{ownerIndex: ownerKey(kind, name.Name)}); err != nil {
		return nil, fmt.Errorf("listing the Workloads of %s: %w", name, err)
	}
	return list.Items, nil
}

// podsLeft reports whether pods of the Workload's job may still use its quota.
func (r *reader[T]) podsLeft(ctx context.Context, w *kueue.Workload) (bool, error) {
	if !workload.HoldsQuota(w) || workload.IsFinished(w) {
		return false, nil
	}
	owner := metav1.GetControllerOf(w)
	left, err := runningPods(ctx, r.live, w, r.api.podLabels(owner.UID), client.Limit(1))
	if err != nil || len(left) > 0 || r.api.UnlabelledPods == nil {
		return len(left) > 0, err
	}
	left, err = runningPods(ctx, r.live, w, client.MatchingLabelsSelector{Selector: r.api.UnlabelledPods(owner.Name)})
	later := func(pod metav1.PartialObjectMetadata) bool { return w.DeletionTimestamp.Before(&pod.CreationTimestamp) }
	return slices.ContainsFunc(left, func(pod metav1.PartialObjectMetadata) bool { return !later(pod) }), err
}

// runningPods lists, from the API server, the selected pods in the Workload's namespace that have not ended.
func runningPods(ctx context.Context, live client.Reader, w *kueue.Workload,
	which ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := live.List(ctx, pods, append(which, client.InNamespace(w.Namespace),
		client.MatchingFieldsSelector{Selector: fields.AndSelectors(
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))})...)
	if err != nil {
		return nil, fmt.Errorf("looking for pods of the job of Workload %s: %w", client.ObjectKeyFromObject(w), err)
	}
	return pods.Items, nil
}
