package workloads

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/workload"
)

// workloadCreationFailed is the reason of the event on a job whose Workload the API server refuses to create.
const workloadCreationFailed = "WorkloadCreationFailed"

// workloadFor returns the Workload that describes the job. Its finalizer is set at creation, without a further write:
// the Workload must count for as long as the job may have pods, whoever deletes it.
func workloadFor(job client.Object, kind schema.GroupVersionKind, described jobs.Description, queue string, p priority,
	r request) *kueue.Workload {
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
	workload.Want(w, described.Wanted)
	describeTimes(w, job, described)
	if at := described.QueuedTime; !at.IsZero() {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.QueuedTimeAnnotation, at.UTC().Format(time.RFC3339))
	}
	return w
}

// setGates copies the job's admission gates to the Workload. A gate that is set only on the Workload is removed, and
// one that is removed only there comes back.
func setGates(w *kueue.Workload, gatedBy string) {
	if gatedBy == "" {
		delete(w.Annotations, kueue.AdmissionGatedByAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, kueue.AdmissionGatedByAnnotation, gatedBy)
}

// workloadWrites keeps the Workload in sync with its job: it creates a missing one, reports progress in its status,
// updates its spec while it waits, and removes its finalizer once it is over. It returns at most one write: a second
// one would conflict with the first, and the watch triggers the next reconcile anyway.
func workloadWrites(seen, described *kueue.Workload, progress jobs.Progress, backoff Backoff,
	now time.Time) []write.Write {
	if seen == nil {
		if progress.Outcome != nil {
			return nil // a job that has ended asks for nothing
		}
		return []write.Write{write.Create(described).OrWarn(workloadCreationFailed)}
	}
	status := seen.DeepCopy()
	report(status, progress, backoff, now)
	if !equality.Semantic.DeepEqual(seen.Status, status.Status) {
		return []write.Write{write.ChangeStatus(seen, status)}
	}
	if free := WithoutFinalizer(seen, progress.Active); free != nil {
		return []write.Write{write.Change(seen, free)}
	}
	if spec := respecified(seen, described, progress); spec != nil {
		return []write.Write{write.Change(seen, spec)}
	}
	return nil
}

// pausedWrites deletes the Workload of a job that is paused, or that asks for other pods than the Workload has quota
// for. The Workload is gone once none of the job's pods is left; a new one is created when the job is to be queued
// again.
func pausedWrites(seen *kueue.Workload, progress jobs.Progress) []write.Write {
	switch {
	case seen == nil:
		return nil
	case seen.DeletionTimestamp.IsZero():
		return []write.Write{write.Delete(seen)}
	}
	if free := WithoutFinalizer(seen, progress.Active); free != nil {
		return []write.Write{write.Change(seen, free)}
	}
	return nil
}

// isElastic reports whether the job may run at several sizes.
func isElastic(w *kueue.Workload) bool {
	return slices.ContainsFunc(w.Spec.PodSets, func(ps kueue.PodSet) bool { return jobs.IsElasticTemplate(&ps.Template) })
}

// WithoutFinalizer returns the Workload without its finalizer, or nil if it must keep it. It may lose it once it is
// finished or deleted and its job has no pods.
func WithoutFinalizer(seen *kueue.Workload, active bool) *kueue.Workload {
	finished := workload.IsFinished(seen) || !seen.DeletionTimestamp.IsZero()
	if active || !finished || !slices.Contains(seen.Finalizers, kueue.ResourceInUseFinalizer) {
		return nil
	}
	out := seen.DeepCopy()
	out.Finalizers = slices.DeleteFunc(out.Finalizers, func(f string) bool { return f == kueue.ResourceInUseFinalizer })
	return out
}

// respecified returns the Workload as its job describes it now, or nil if nothing changes or the job has ended. What
// quota is held for never changes; the priority may, with the WorkloadPriorityClass or by naming another one.
func respecified(seen, described *kueue.Workload, progress jobs.Progress) *kueue.Workload {
	if progress.Outcome != nil || workload.IsFinished(seen) {
		return nil
	}
	out := seen.DeepCopy()
	if workload.HoldsQuota(seen) {
		if was, is := seen.Spec, described.Spec; was.PriorityClassSource == kueue.WorkloadPriorityClassSource &&
			is.PriorityClassSource == was.PriorityClassSource {
			out.Spec.PriorityClassName, out.Spec.Priority = is.PriorityClassName, is.Priority
		} else if isElastic(seen) && was.PriorityClassName == "" && is.PriorityClassName == "" {
			out.Spec.Priority = is.Priority // decides from which jobs it may take pods, and which from it
		}
		if described != seen || progress.OutcomePending {
			raise(out, described)
			workload.Want(out, lowered(out, described, progress))
		}
	} else {
		out.Spec = described.Spec
		out.Spec.Active = seen.Spec.Active // users deactivate Workloads, jobs do not
		out.Spec.PreemptionGates = seen.Spec.PreemptionGates
		if described.Spec.MaximumExecutionTimeSeconds == nil {
			out.Spec.MaximumExecutionTimeSeconds = seen.Spec.MaximumExecutionTimeSeconds
		}
		setGates(out, described.Annotations[kueue.AdmissionGatedByAnnotation])
		if described != seen {
			workload.Want(out, 0) // the pod sets say it themselves
		}
	}
	updateRecordedNeeds(out, seen, described)
	if described != seen {
		updateTimes(out, described)
	}
	if equality.Semantic.DeepEqual(seen.Spec, out.Spec) && equality.Semantic.DeepEqual(seen.Annotations, out.Annotations) {
		return nil
	}
	return out
}

// raise has a Workload that holds quota ask for as many pods of an elastic pod set as its job does by now, if these are
// more: the queue then lets it grow when there is capacity. All else of its pod sets stays as it was admitted. A pod
// set whose quota follows from how many pods it asks for asks for no more: where its admission does not say how many
// pods it has, and where some have given their quota back (workload.PodsHoldingQuota).
func raise(out, described *kueue.Workload) {
	for was := range pointers.To(out.Spec.PodSets) {
		if !jobs.IsElasticTemplate(&was.Template) || !saysGranted(out, was.Name) || workload.Reclaimed(out, was) > 0 {
			continue
		}
		if is := podSetOf(described, was.Name); is != nil && jobs.IsElasticTemplate(&is.Template) {
			was.Count = max(was.Count, is.Count)
		}
	}
}

// saysGranted reports whether the Workload's admission says how many pods the pod set was admitted with.
func saysGranted(w *kueue.Workload, podSet kueue.PodSetReference) bool {
	a := assignmentOf(w, podSet)
	return a != nil && a.Count != nil
}

// lowered returns how many pods the job now wants in the pod set that was admitted as elastic, if that is fewer than at
// admission, else 0. The pod sets themselves are immutable while the Workload holds quota. It does not matter whether
// the job still asks for a range: the pod set stays elastic until the next admission. A job that is to run no pods for
// now keeps its quota, but wants no more. One that knows how many pods it still needs, since some have ended, wants
// these. One that has ended wants only the pods that run on: it creates no more. If all are being stopped, it keeps its
// grant until they are gone, which is soon.
func lowered(seen, described *kueue.Workload, progress jobs.Progress) int32 {
	for was := range pointers.To(seen.Spec.PodSets) {
		if !jobs.IsElasticTemplate(&was.Template) {
			continue
		}
		wanted := was.Count
		if is := podSetOf(described, was.Name); is != nil {
			wanted = min(wanted, cmp.Or(workload.Wanted(described, is), grantedPods(seen, was)))
		}
		if needed, known := progress.Needed[string(was.Name)]; known {
			wanted = min(wanted, max(1, needed))
		}
		if progress.OutcomePending {
			wanted = min(wanted, cmp.Or(progress.RunOn[string(was.Name)], grantedPods(seen, was)))
		}
		if wanted < was.Count {
			return wanted
		}
	}
	return 0
}

// grantedPods returns how many pods of the pod set the Workload was admitted with.
func grantedPods(w *kueue.Workload, podSet *kueue.PodSet) int32 {
	if a := assignmentOf(w, podSet.Name); a != nil {
		return ptr.Deref(a.Count, podSet.Count)
	}
	return podSet.Count
}

// assignmentOf returns what the pod set was admitted with, nil if it was not.
func assignmentOf(w *kueue.Workload, podSet kueue.PodSetReference) *kueue.PodSetAssignment {
	return pointers.First(ptr.Deref(w.Status.Admission, kueue.Admission{}).PodSetAssignments,
		func(a *kueue.PodSetAssignment) bool { return a.Name == podSet })
}

// podSetOf returns the Workload's pod set of the name, nil if there is none.
func podSetOf(w *kueue.Workload, name kueue.PodSetReference) *kueue.PodSet {
	return pointers.First(w.Spec.PodSets, func(ps *kueue.PodSet) bool { return ps.Name == name })
}
