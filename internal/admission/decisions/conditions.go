package decisions

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/workload"
)

// admit writes what the engine gave, with the places of the pod sets, into the Workload's status. It takes a single
// write: the quota reservation and, unless checks are pending, the admission together.
func admit(w *kueue.Workload, given *engine.Admission, places map[string]*kueue.TopologyAssignment, now time.Time) {
	w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(given.ClusterQueue)}
	for _, a := range given.PodSets {
		assignment := kueue.PodSetAssignment{
			Name:          kueue.PodSetReference(a.PodSet),
			Count:         ptr.To(a.Count),
			Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{},
			ResourceUsage: corev1.ResourceList{},

			TopologyAssignment: places[a.PodSet],
		}
		for resource, name := range a.Flavors {
			assignment.Flavors[corev1.ResourceName(resource)] = kueue.ResourceFlavorReference(name)
			assignment.ResourceUsage[corev1.ResourceName(resource)] = quota.ToQuantity(corev1.ResourceName(resource),
				a.Usage[resource])
		}
		w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, assignment)
	}
	workload.SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReservedReason,
		fmt.Sprintf("Quota reserved in ClusterQueue %s", given.ClusterQueue), now)
	awaitChecks(w, given.Checks, now)
	if len(given.Checks) == 0 {
		workload.SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmittedReason,
			lifecycle.AdmittedMessage, now)
	} else {
		workload.SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionFalse, kueue.WorkloadUnsatisfiedAdmissionChecks,
			lifecycle.ChecksMessage, now)
	}
	workload.ResumeQueueing(w, now)
	for _, past := range []string{kueue.WorkloadEvicted, kueue.WorkloadPreempted} {
		if c := workload.IfTrue(w, past); c != nil {
			workload.SetCondition(w, past, metav1.ConditionFalse, kueue.WorkloadQuotaReservedReason,
				"Previously: "+c.Message, now)
		}
	}
}

// awaitChecks lists exactly the checks that must be ready. A listed check keeps its state until its controller
// changes it: an eviction has reset it.
func awaitChecks(w *kueue.Workload, names []string, now time.Time) {
	var listed []kueue.AdmissionCheckState
	for _, name := range names {
		check := kueue.AdmissionCheckState{
			Name: kueue.AdmissionCheckReference(name), State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(now)}
		if at := slices.IndexFunc(w.Status.AdmissionChecks,
			func(c kueue.AdmissionCheckState) bool { return string(c.Name) == name }); at >= 0 {
			check = w.Status.AdmissionChecks[at]
		}
		listed = append(listed, check)
	}
	w.Status.AdmissionChecks = listed
}

// causes are the reasons and the wording for each cause of a preemption.
var causes = map[preempt.Cause]struct{ reason, words string }{
	preempt.InQueue:   {kueue.InClusterQueueReason, "prioritization in the ClusterQueue"},
	preempt.Reclaimed: {kueue.InCohortReclamationReason, "reclamation within the cohort"},
	preempt.ReclaimedWhileBorrowing: {kueue.InCohortReclaimWhileBorrowingReason,
		"reclamation within the cohort while borrowing"},
	preempt.FairShare: {kueue.InCohortFairSharingReason, "Fair Sharing within the cohort"},
}

// replace changes the places in the Workload's admission and nothing else. It reports whether they changed.
func replace(w *kueue.Workload, places map[string]*kueue.TopologyAssignment) (changed bool) {
	assignments := w.Status.Admission.PodSetAssignments
	for i := range assignments {
		moved := places[string(assignments[i].Name)]
		if moved != nil && !equality.Semantic.DeepEqual(assignments[i].TopologyAssignment, moved) {
			assignments[i].TopologyAssignment, changed = moved, true
		}
	}
	return changed
}

// evict marks the Workload evicted, with the preemptor or the reason. It keeps its quota until its pods are gone.
func evict(w *kueue.Workload, e *engine.Eviction, by preemptorJob, now time.Time) {
	if e.Cause == preempt.NodeFailures {
		workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedDueToNodeFailures, Message: e.Detail}, now)
		return
	}
	cause := causes[e.Cause]
	message := fmt.Sprintf(translate.PreemptorBegins+"%s"+translate.PreemptorEnds+
		" JobUID: %s) due to %s; preemptor path: %s; preemptee path: %s",
		e.PreemptorUID, by.uid, cause.words, e.PreemptorPath, e.Path)
	if by.title != "" && e.Preemptor.Namespace == w.Namespace {
		message += preemptorName + by.title // who may read this Workload may read that job, also once it is gone
	}
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Cause: cause.reason,
		Message: message}, now)
	workload.SetCondition(w, kueue.WorkloadPreempted, metav1.ConditionTrue, cause.reason, message, now)
}

// preemptorJob is the job that another was evicted for: its UID, and its kind and name, such as job/high.
type preemptorJob struct{ uid, title string }

// preemptorName is before the title of the preemptor in the message of a preemption within a namespace. A preemptor of
// another namespace is not named: not everybody may know it.
const preemptorName = "; preemptor: "

// Wait writes into the Workload's status why it waits.
func Wait(w *kueue.Workload, why reason.Reason, now time.Time) {
	workload.SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, string(why.Code), why.Message(), now)
}
