package jobs

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// Messages of the conditions that a job reports on its Workload.
const (
	podsReadyMessage      = "All pods reached readiness and the workload is running"
	podsRecoveringMessage = "At least one pod has failed, waiting for recovery"
	noReservationMessage  = "The workload has no reservation"
)

// workloadCreationFailed is the reason of the event that tells people, on their job,
// that the API server refuses to have it queued as it is.
const workloadCreationFailed = "WorkloadCreationFailed"

// WorkloadName is the name of a job's Workload, <kind>-<name>-<5 hex digits>: the
// same in every reconcile, so that creating it twice does no harm, and another for
// a later job of the same name. Names beyond 253 bytes are cut before the digits.
func WorkloadName(kind schema.GroupVersionKind, name string, uid types.UID) string {
	sum := sha1.Sum([]byte(strings.Join([]string{kind.Kind, kind.Group, name, string(uid)}, "\n")))
	suffix := "-" + hex.EncodeToString(sum[:])[:5]
	prefix := strings.ToLower(kind.Kind) + "-" + name
	return strings.TrimRight(prefix[:min(len(prefix), 253-len(suffix))], "-.") + suffix
}

// workloadFor is the Workload that describes the job.
func workloadFor(job client.Object, kind schema.GroupVersionKind, described Description, queue string, p priority) *kueue.Workload {
	spec := kueue.WorkloadSpec{
		QueueName:           kueue.LocalQueueName(queue),
		PodSets:             described.PodSets,
		Priority:            ptr.To(p.value),
		PriorityClassName:   p.class,
		PriorityClassSource: p.source,
		Active:              ptr.To(true),
	}
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name:            WorkloadName(kind, job.GetName(), job.GetUID()),
			Namespace:       job.GetNamespace(),
			Labels:          map[string]string{kueue.JobUIDLabel: string(job.GetUID())},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, kind)},
		},
		Spec: spec,
	}
}

// grantOf reads what the Workload grants its job.
func grantOf(w *kueue.Workload, flavors map[string]*kueue.ResourceFlavor) Admission {
	switch {
	case w == nil || w.Status.Admission == nil:
		return Admission{Grant: Waiting}
	case meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted):
		return Admission{Grant: Stopping}
	case !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted):
		return Admission{Grant: Waiting}
	}
	out := Admission{Grant: Admitted, PodSets: map[string]PodSetAdmission{}}
	counts := map[kueue.PodSetReference]int32{}
	for _, ps := range w.Spec.PodSets {
		counts[ps.Name] = ps.Count
	}
	for _, a := range w.Status.Admission.PodSetAssignments {
		granted := PodSetAdmission{Count: ptr.Deref(a.Count, counts[a.Name]), Injection: podspec.Injection{
			Labels:       map[string]string{kueue.PodSetLabel: string(a.Name)},
			NodeSelector: map[string]string{},
		}}
		for _, name := range sortedFlavors(a) {
			flavor := flavors[name]
			if flavor == nil {
				out.MissingFlavor = name
				continue
			}
			for key, value := range flavor.Spec.NodeLabels {
				granted.NodeSelector[key] = value
			}
			granted.Tolerations = append(granted.Tolerations, flavor.Spec.Tolerations...)
		}
		out.PodSets[string(a.Name)] = granted
	}
	return out
}

// workloadWrites brings the Workload in step with its job: made if missing, its
// spec kept true while it waits, and its status told how the job fares.
func workloadWrites(seen, described *kueue.Workload, progress Progress, now time.Time) []Write {
	if seen == nil {
		if progress.Outcome != nil {
			return nil // an ended job asks for nothing
		}
		return []Write{Create(described).OrWarn(workloadCreationFailed)}
	}
	var writes []Write
	if spec := respecified(seen, described, progress); spec != nil {
		writes = append(writes, Change(seen, spec))
	}
	status := seen.DeepCopy()
	report(status, progress, now)
	if !equality.Semantic.DeepEqual(seen.Status, status.Status) {
		writes = append(writes, ChangeStatus(seen, status))
	}
	return writes
}

// respecified is the Workload as its job describes it now, or nil if that changes
// nothing or comes too late: what quota is held for stays as it is.
func respecified(seen, described *kueue.Workload, progress Progress) *kueue.Workload {
	if progress.Outcome != nil || seen.Status.Admission != nil {
		return nil
	}
	out := seen.DeepCopy()
	active := seen.Spec.Active // people deactivate Workloads, jobs do not
	limit := seen.Spec.MaximumExecutionTimeSeconds
	out.Spec = described.Spec
	out.Spec.Active, out.Spec.MaximumExecutionTimeSeconds = active, limit
	if equality.Semantic.DeepEqual(seen.Spec, out.Spec) {
		return nil
	}
	return out
}

// report writes how the job fares into its Workload's conditions.
func report(w *kueue.Workload, progress Progress, now time.Time) {
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message,
			ObservedGeneration: w.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	if meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
		return
	}
	if o := progress.Outcome; o != nil {
		reason := kueue.WorkloadFinishedReasonFailed
		if o.Succeeded {
			reason = kueue.WorkloadFinishedReasonSucceeded
		}
		set(kueue.WorkloadFinished, metav1.ConditionTrue, reason, o.Message)
		return
	}
	if evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted); evicted != nil &&
		evicted.Status == metav1.ConditionTrue && w.Status.Admission != nil {
		if !progress.Active {
			giveBack(w, *evicted, set)
		}
		return
	}
	if !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) {
		return
	}
	ready := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPodsReady)
	switch {
	case progress.Ready && ready == nil:
		set(kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted, podsReadyMessage)
	case progress.Ready && ready.Status != metav1.ConditionTrue:
		set(kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadRecovered, podsReadyMessage)
	case !progress.Ready && ready != nil && ready.Status == metav1.ConditionTrue:
		set(kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForRecovery, podsRecoveringMessage)
	}
}

// giveBack returns the quota of an evicted Workload whose pods are gone.
func giveBack(w *kueue.Workload, evicted metav1.Condition, set func(kind string, status metav1.ConditionStatus, reason, message string)) {
	again := metav1.ConditionFalse
	if evicted.Reason == kueue.WorkloadEvictedByPreemption || evicted.Reason == kueue.WorkloadEvictedDueToNodeFailures {
		again = metav1.ConditionTrue
	}
	w.Status.Admission = nil
	set(kueue.WorkloadRequeued, again, evicted.Reason, evicted.Message)
	set(kueue.WorkloadQuotaReserved, metav1.ConditionFalse, kueue.WorkloadPendingEvaluation, evicted.Message)
	set(kueue.WorkloadAdmitted, metav1.ConditionFalse, kueue.WorkloadNoReservation, noReservationMessage)
	meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadPodsReady)
}

// sortedFlavors are the distinct flavors of the assignment, in the order of names.
func sortedFlavors(a kueue.PodSetAssignment) []string {
	names := sets.New[string]()
	for _, flavor := range a.Flavors {
		names.Insert(string(flavor))
	}
	return sets.List(names)
}
