package jobs

import (
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// workloadCreationFailed is the reason of the event that tells people, on their job,
// that the API server refuses to have it queued as it is.
const workloadCreationFailed = "WorkloadCreationFailed"

// workloadName is the name of a job's Workload, <kind>-<name>-<5 hex digits>: the
// same in every reconcile, so that creating it twice does no harm, and another for
// a later job of the same name. Names beyond 253 bytes are cut before the digits.
func workloadName(kind schema.GroupVersionKind, name string, uid types.UID) string {
	sum := sha1.Sum([]byte(strings.Join([]string{kind.Kind, kind.Group, name, string(uid)}, "\n")))
	suffix := "-" + hex.EncodeToString(sum[:])[:5]
	prefix := strings.ToLower(kind.Kind) + "-" + name
	return strings.TrimRight(prefix[:min(len(prefix), 253-len(suffix))], "-.") + suffix
}

// workloadFor is the Workload that describes the job. Its finalizer comes with its
// creation, which costs no write: it counts as long as the job may have pods, whoever
// deletes it.
func workloadFor(job client.Object, kind schema.GroupVersionKind, described Description, queue string, p priority, r request) *kueue.Workload {
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name:            workloadName(kind, job.GetName(), job.GetUID()),
			Namespace:       job.GetNamespace(),
			Labels:          map[string]string{kueue.JobUIDLabel: string(job.GetUID())},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, kind)},
			Finalizers:      []string{kueue.ResourceInUseFinalizer},
		},
		Spec: kueue.WorkloadSpec{
			QueueName:                   kueue.LocalQueueName(queue),
			PodSets:                     described.PodSets,
			Priority:                    ptr.To(p.value),
			PriorityClassName:           p.class,
			PriorityClassSource:         p.source,
			Active:                      ptr.To(true),
			MaximumExecutionTimeSeconds: r.maximumExecutionTimeSeconds,
		},
	}
	setGates(w, r.gatedBy)
	if at := described.QueuedTime; !at.IsZero() {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.QueuedTimeAnnotation, at.UTC().Format(time.RFC3339))
	}
	return w
}

// setGates has the Workload say who holds its admission back, as its job does.
func setGates(w *kueue.Workload, gatedBy string) {
	switch {
	case gatedBy == "":
		delete(w.Annotations, kueue.AdmissionGatedByAnnotation)
	case w.Annotations == nil:
		w.Annotations = map[string]string{kueue.AdmissionGatedByAnnotation: gatedBy}
	default:
		w.Annotations[kueue.AdmissionGatedByAnnotation] = gatedBy
	}
}

// workloadWrites brings the Workload in step with its job: made if missing, its
// status told how the job fares, its spec kept true while it waits, and let go once
// it is over. It is one write at most: a second one would find the Workload changed,
// and the watch brings the next look.
func workloadWrites(seen, described *kueue.Workload, progress Progress, backoff Backoff, now time.Time) []Write {
	if seen == nil {
		if progress.Outcome != nil {
			return nil // an ended job asks for nothing
		}
		return []Write{Create(described).OrWarn(workloadCreationFailed)}
	}
	status := seen.DeepCopy()
	report(status, progress, backoff, now)
	if !equality.Semantic.DeepEqual(seen.Status, status.Status) {
		return []Write{ChangeStatus(seen, status)}
	}
	if free := released(seen, progress.Active); free != nil {
		return []Write{Change(seen, free)}
	}
	if spec := respecified(seen, described, progress); spec != nil {
		return []Write{Change(seen, spec)}
	}
	return nil
}

// pausedWrites have a job that is paused ask for nothing: its Workload is deleted, and
// goes once none of its pods is left. A new one is made when the job is resumed. So is one of
// a job that asks for other pods than its Workload has quota for.
func pausedWrites(seen *kueue.Workload, progress Progress) []Write {
	switch {
	case seen == nil:
		return nil
	case seen.DeletionTimestamp.IsZero():
		return []Write{Delete(seen, metav1.DeletePropagationBackground)}
	}
	if free := released(seen, progress.Active); free != nil {
		return []Write{Change(seen, free)}
	}
	return nil
}

// keepSizes has no pod set be elastic: of one that does not follow, what it is to give up
// would be waited for without end.
func keepSizes(podSets []kueue.PodSet) {
	for i := range podSets {
		podSet := &podSets[i].Template.ObjectMeta
		if _, says := podSet.Annotations[muster.MinReplicasAnnotation]; says {
			podSet.Annotations = maps.Clone(podSet.Annotations) // they may be the job's own
			delete(podSet.Annotations, muster.MinReplicasAnnotation)
		}
	}
}

// isElastic reports whether the job may run at several sizes.
func isElastic(w *kueue.Workload) bool {
	return slices.ContainsFunc(w.Spec.PodSets, func(ps kueue.PodSet) bool { return saysLeast(&ps.Template) })
}

// released is the Workload without its finalizer if nothing counts on it any more, or
// nil: it is finished or deleted, and its job has no pods.
func released(seen *kueue.Workload, active bool) *kueue.Workload {
	over := workload.IsFinished(seen) || !seen.DeletionTimestamp.IsZero()
	if active || !over || !slices.Contains(seen.Finalizers, kueue.ResourceInUseFinalizer) {
		return nil
	}
	out := seen.DeepCopy()
	out.Finalizers = slices.DeleteFunc(out.Finalizers, func(f string) bool { return f == kueue.ResourceInUseFinalizer })
	return out
}

// respecified is the Workload as its job describes it now, or nil if that changes
// nothing or comes too late. What quota is held for stays as it is; how urgent it is
// may change, with its WorkloadPriorityClass or to another one.
func respecified(seen, described *kueue.Workload, progress Progress) *kueue.Workload {
	if progress.Outcome != nil || workload.IsFinished(seen) {
		return nil
	}
	out := seen.DeepCopy()
	if workload.HoldsQuota(seen) {
		if was, is := seen.Spec, described.Spec; was.PriorityClassSource == kueue.WorkloadPriorityClassSource && is.PriorityClassSource == was.PriorityClassSource {
			out.Spec.PriorityClassName, out.Spec.Priority = is.PriorityClassName, is.Priority
		} else if isElastic(seen) && was.PriorityClassName == "" && is.PriorityClassName == "" {
			out.Spec.Priority = is.Priority // it may take from others now, or they from it
		}
		if described != seen {
			workload.Want(out, lowered(seen, described))
		}
	} else {
		out.Spec = described.Spec
		out.Spec.Active = seen.Spec.Active // people deactivate Workloads, jobs do not
		out.Spec.PreemptionGates = seen.Spec.PreemptionGates
		if described.Spec.MaximumExecutionTimeSeconds == nil {
			out.Spec.MaximumExecutionTimeSeconds = seen.Spec.MaximumExecutionTimeSeconds
		}
		setGates(out, described.Annotations[kueue.AdmissionGatedByAnnotation])
		if described != seen {
			workload.Want(out, 0) // its pod sets say so themselves
		}
		if asked := described.Annotations[muster.AskedAnnotation]; asked != "" && !equality.Semantic.DeepEqual(seen.Spec.PodSets, out.Spec.PodSets) {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, muster.AskedAnnotation, asked)
		}
	}
	if equality.Semantic.DeepEqual(seen.Spec, out.Spec) && equality.Semantic.DeepEqual(seen.Annotations, out.Annotations) {
		return nil
	}
	return out
}

// lowered returns how many pods the job now asks for of the pod set that was admitted as elastic, if that is fewer than when it was
// admitted, and otherwise 0. The pod sets themselves are immutable while the Workload holds quota. It does not matter whether the job
// still asks for a range: the pod set stays elastic until the next admission.
func lowered(seen, described *kueue.Workload) int32 {
	for i := range seen.Spec.PodSets {
		was := &seen.Spec.PodSets[i]
		if !saysLeast(&was.Template) {
			continue
		}
		for j := range described.Spec.PodSets {
			is := &described.Spec.PodSets[j]
			if is.Name == was.Name && is.Count < was.Count && is.Count > 0 {
				return is.Count
			}
		}
	}
	return 0
}
