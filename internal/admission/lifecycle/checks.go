package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// Messages of the Admitted condition, which the write that admits a Workload and its lifecycle share.
const (
	AdmittedMessage        = "The workload is admitted"
	ChecksMessage          = "The workload has not all checks ready"
	delayedTopologyMessage = "There are pending delayed topology requests"
)

// admissionChecksMax is the API's limit for the checks in the status of a Workload.
const admissionChecksMax = 8

// ChecksFor returns the ClusterQueue's checks that apply to the admission, in the order of the spec. Without an
// admission it returns the checks that apply to every flavor.
func ChecksFor(q *kueue.ClusterQueueSpec, admission *kueue.Admission) []kueue.AdmissionCheckReference {
	var out []kueue.AdmissionCheckReference
	for _, rule := range CheckRules(q) {
		if (len(rule.OnFlavors) == 0 || usesAny(admission, rule.OnFlavors)) && !slices.Contains(out, rule.Name) {
			out = append(out, rule.Name)
		}
	}
	return out
}

// ChecksProblem returns why the checks of a ClusterQueue prevent admission, as the reason and message of its Active
// condition; "" if they do not. checks are all AdmissionChecks by name.
func ChecksProblem(q *kueue.ClusterQueueSpec, checks map[string]*kueue.AdmissionCheck) (reason, message string) {
	var missing, inactive []string
	for _, rule := range CheckRules(q) {
		name := string(rule.Name)
		switch check := checks[name]; {
		case check == nil:
			missing = append(missing, name)
		case !IsActive(check):
			inactive = append(inactive, name)
		}
	}
	general := len(ChecksFor(q, nil))
	flavor, ofFlavor := mostChecked(q)
	switch {
	case len(missing) > 0:
		return kueue.ClusterQueueActiveReasonAdmissionCheckNotFound,
			fmt.Sprintf("Can't admit new workloads: references missing AdmissionCheck(s): %v", distinct(missing))
	case len(inactive) > 0:
		return kueue.ClusterQueueActiveReasonAdmissionCheckInactive,
			fmt.Sprintf("Can't admit new workloads: references inactive AdmissionCheck(s): %v", distinct(inactive))
	case general > admissionChecksMax:
		return kueue.ClusterQueueActiveReasonUnknown,
			fmt.Sprintf("Can't admit new workloads: %d AdmissionChecks apply to every flavor, and a Workload can have only %d; restrict some with onFlavors",
				general, admissionChecksMax)
	case ofFlavor > admissionChecksMax:
		return kueue.ClusterQueueActiveReasonUnknown,
			fmt.Sprintf("Can't admit new workloads: %d AdmissionChecks apply to flavor %s, and a Workload can have only %d; remove some",
				ofFlavor, flavor, admissionChecksMax)
	}
	return "", ""
}

// mostChecked returns the flavor of onFlavors to which the most checks apply, and their number; 0 if no check has
// onFlavors.
func mostChecked(q *kueue.ClusterQueueSpec) (most kueue.ResourceFlavorReference, checks int) {
	for _, rule := range CheckRules(q) {
		for _, flavor := range rule.OnFlavors {
			alone := kueue.PodSetAssignment{
				Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{corev1.ResourcePods: flavor}}
			if n := len(ChecksFor(q, &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{alone}})); n > checks {
				most, checks = flavor, n
			}
		}
	}
	return most, checks
}

// IsActive reports whether the check's controller reports it active.
func IsActive(check *kueue.AdmissionCheck) bool {
	return meta.IsStatusConditionTrue(check.Status.Conditions, kueue.AdmissionCheckActive)
}

// CheckRules returns the checks of a ClusterQueue, whichever of the two fields lists them.
func CheckRules(q *kueue.ClusterQueueSpec) []kueue.AdmissionCheckStrategyRule {
	if q.AdmissionChecksStrategy != nil {
		return q.AdmissionChecksStrategy.AdmissionChecks
	}
	var out []kueue.AdmissionCheckStrategyRule
	for _, name := range q.AdmissionChecks {
		out = append(out, kueue.AdmissionCheckStrategyRule{Name: name})
	}
	return out
}

func usesAny(admission *kueue.Admission, flavors []kueue.ResourceFlavorReference) bool {
	if admission == nil {
		return false
	}
	for _, a := range admission.PodSetAssignments {
		for flavor := range maps.Values(a.Flavors) {
			if slices.Contains(flavors, flavor) {
				return true
			}
		}
	}
	return false
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// listChecks updates the list of checks to that of the ClusterQueue until the Workload is admitted. After that the
// list stays: later checks do not apply to what runs, and pods keep what a removed check has given them. Of more checks
// than the API accepts only the first are listed, so that the rest of the status can be written.
func (d *draft) listChecks() {
	if workload.IsAdmitted(d.w) || d.facts.ClusterQueue == nil {
		return
	}
	wanted := ChecksFor(&d.facts.ClusterQueue.Spec, d.w.Status.Admission)
	wanted = wanted[:min(len(wanted), admissionChecksMax)]
	listed := d.w.Status.AdmissionChecks
	place := func(name kueue.AdmissionCheckReference) int {
		return slices.IndexFunc(listed, func(c kueue.AdmissionCheckState) bool { return c.Name == name })
	}
	missing := slices.ContainsFunc(wanted, func(name kueue.AdmissionCheckReference) bool { return place(name) < 0 })
	if !missing && len(listed) == len(wanted) {
		return // whatever the order: controllers that apply a state may reorder the list
	}
	checks := make([]kueue.AdmissionCheckState, 0, len(wanted))
	for _, name := range wanted {
		state := kueue.AdmissionCheckState{Name: name, State: kueue.CheckStatePending,
			LastTransitionTime: metav1.NewTime(d.now)}
		if i := place(name); i >= 0 {
			state = *listed[i].DeepCopy()
		}
		checks = append(checks, state)
	}
	d.edit().Status.AdmissionChecks = checks
}

// rejected marks a Workload for deactivation if a check has rejected it, and reports whether one has.
func (d *draft) rejected() bool {
	why := statesMessage(d.w, kueue.CheckStateRejected)
	if why == "" {
		return false
	}
	d.markForDeactivation(kueue.WorkloadEvictedByAdmissionCheck, why)
	return true
}

// retried evicts a Workload if a check asks to retry, and reports whether one does.
func (d *draft) retried() bool {
	why := statesMessage(d.w, kueue.CheckStateRetry)
	if why == "" {
		return false
	}
	d.postponeForChecks()
	workload.Evict(d.edit(), workload.Eviction{Reason: kueue.WorkloadEvictedByAdmissionCheck, Message: why}, d.now)
	return true
}

// retriedInQueue holds back a Workload without quota if a check asked to retry only after the reservation was
// released.
func (d *draft) retriedInQueue() {
	why := statesMessage(d.w, kueue.CheckStateRetry)
	if why == "" {
		return
	}
	d.postponeForChecks()
	d.set(kueue.WorkloadRequeued, metav1.ConditionFalse, kueue.WorkloadEvictedByAdmissionCheck, why)
	workload.ResetChecks(d.edit(), d.now)
}

// postponeForChecks delays requeueing as its checks ask, counted from when they did.
func (d *draft) postponeForChecks() {
	for _, c := range d.w.Status.AdmissionChecks {
		if c.State == kueue.CheckStateRetry && ptr.Deref(c.RequeueAfterSeconds, 0) > 0 {
			workload.Postpone(d.edit(), c.LastTransitionTime.Add(time.Duration(*c.RequeueAfterSeconds)*time.Second))
		}
	}
}

// statesMessage returns a message about the checks in the state, "" if there are none.
func statesMessage(w *kueue.Workload, state kueue.CheckState) string {
	var states []string
	for _, c := range w.Status.AdmissionChecks {
		if c.State == state {
			states = append(states, fmt.Sprintf("%q (%s)", c.Name, c.Message))
		}
	}
	if len(states) == 0 {
		return ""
	}
	return fmt.Sprintf("AdmissionCheck in %s state: %s", state, strings.Join(states, ", "))
}

// admit admits a Workload that holds quota once all its checks are ready and its topology is assigned.
func (d *draft) admit() {
	switch {
	case workload.IsAdmitted(d.w) || !workload.IsTrue(d.w, kueue.WorkloadQuotaReserved):
	case !ready(d.w.Status.AdmissionChecks), d.hasUnlistedChecks():
		d.set(kueue.WorkloadAdmitted, metav1.ConditionFalse, kueue.WorkloadUnsatisfiedAdmissionChecks, ChecksMessage)
	case awaitsTopology(d.w.Status.Admission):
		d.set(kueue.WorkloadAdmitted, metav1.ConditionFalse, kueue.WorkloadPendingDelayedTopologyRequests,
			delayedTopologyMessage)
	default:
		d.set(kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmittedReason, AdmittedMessage)
	}
}

// hasUnlistedChecks reports whether more checks apply than the status can list.
func (d *draft) hasUnlistedChecks() bool {
	q := d.facts.ClusterQueue
	return q != nil && len(ChecksFor(&q.Spec, d.w.Status.Admission)) > admissionChecksMax
}

func ready(checks []kueue.AdmissionCheckState) bool {
	return !slices.ContainsFunc(checks, func(c kueue.AdmissionCheckState) bool { return c.State != kueue.CheckStateReady })
}

func awaitsTopology(a *kueue.Admission) bool {
	return slices.ContainsFunc(a.PodSetAssignments, func(a kueue.PodSetAssignment) bool {
		return ptr.Deref(a.DelayedTopologyRequest,
			kueue.DelayedTopologyRequestStateReady) == kueue.DelayedTopologyRequestStatePending
	})
}
