package reason

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/quota"
)

// Code is the machine-readable reason. It is the reason of the condition QuotaReserved while that is False.
// docs/reference/reasons.md has an entry for each code.
type Code string

const (
	// None means that nothing keeps the workload waiting.
	None Code = ""
	// Inadmissible: the object or its queue must be fixed; waiting alone does not help.
	Inadmissible Code = "Inadmissible"
	// Deactivated: spec.active of the workload was set to false.
	Deactivated Code = "Deactivated"
	// OnHold: a queue is stopped by its stopPolicy.
	OnHold Code = "OnHold"
	// PendingEvaluation: it is not in its queue yet, or not again.
	PendingEvaluation Code = "PendingEvaluation"
	// AdmissionGated: an annotation gates its admission.
	AdmissionGated Code = "AdmissionGated"
	// WaitingForPodsReady: the pods of admitted workloads must be ready first.
	WaitingForPodsReady Code = "WaitingForPodsReady"
	// WaitingForPreemptedWorkloads: others are being evicted for it and are not gone yet.
	WaitingForPreemptedWorkloads Code = "WaitingForPreemptedWorkloads"
	// NoMatchingFlavor: no flavor of the queue offers the resources to these pods.
	NoMatchingFlavor Code = "NoMatchingFlavor"
	// ExceedsMaxQuota: it requests more than the queue could give if it were empty.
	ExceedsMaxQuota Code = "ExceedsMaxQuota"
	// ExceedsNodes: the present nodes could not hold its pods as close together as requested even if nothing else ran on
	// them.
	ExceedsNodes Code = "ExceedsNodes"
	// TopologyPlacementFailed: there is quota, but the nodes have no capacity for all its pods as close together as
	// requested.
	TopologyPlacementFailed Code = "TopologyPlacementFailed"
	// WaitingForQuota: it would fit once others release what they hold.
	WaitingForQuota Code = "WaitingForQuota"
	// BehindReservation: it would fit now, and would delay another workload whose start is planned.
	BehindReservation Code = "BehindReservation"
)

// Actionable reports whether messages of this code name what must be fixed. Unlike amounts, that does not change by
// itself, so that a message must be updated when it changes: otherwise users fix the wrong thing.
func (c Code) Actionable() bool {
	return c == Inadmissible || c == OnHold || c == AdmissionGated || c == NoMatchingFlavor
}

// ToFix reports whether something must be fixed before a workload with this code is admitted: it does not suffice that
// others end.
func (c Code) ToFix() bool { return c.Actionable() || c.Never() }

// IsNews reports whether a status that shows the reported code must show this one. Whether a workload lacks quota, or
// would delay another one with what is free, may change with each workload that ends: either is told once.
func (c Code) IsNews(reported Code) bool {
	alternate := func(a, b Code) bool { return a == BehindReservation && b.MayStart() }
	return c != reported && !alternate(c, reported) && !alternate(reported, c)
}

// MayStart reports whether a workload with this code may start once others end.
func (c Code) MayStart() bool { return c == WaitingForQuota || c == TopologyPlacementFailed }

// Never reports whether a workload with this code is never admitted with the present quota and nodes, whoever ends.
func (c Code) Never() bool { return c == ExceedsMaxQuota || c == ExceedsNodes }

// Reason is why a workload waits. The zero value means that nothing keeps it waiting.
type Reason struct {
	Code Code
	// Detail is the whole message if there is no PodSet.
	Detail string
	// PodSet is the first pod set that could not be assigned flavors, and Flavors are the results of the flavors
	// tried, in the order of the queue.
	PodSet  string
	Flavors []Verdict
	// Preempted is the number of workloads evicted for it, Ending that of others that are ending and hold what it lacks.
	Preempted, Ending int
}

// SameBlame reports whether both reasons, of the same code, name the same thing to fix. For ExceedsMaxQuota that is the
// resources and flavors, whatever the amounts: the capacity of a queue may follow its nodes.
func (r Reason) SameBlame(other Reason) bool {
	switch {
	case r.Code.Actionable():
		return r.Message() == other.Message()
	case r.Code != ExceedsMaxQuota:
		return true
	}
	return r.PodSet == other.PodSet && slices.EqualFunc(r.Flavors, other.Flavors, func(a, b Verdict) bool {
		return a.Flavor == b.Flavor && a.Resource == b.Resource && a.Detail == b.Detail
	})
}

// Verdict is the result of one flavor for one pod set.
type Verdict struct {
	Flavor string
	Code   Code
	// Detail is the message if the numbers below are not the cause.
	Detail string
	// Resource is the one that was short. Earlier and Asked are what the earlier pod sets and this one request of it,
	// Free is what the queue could take now, and Capacity what it could take if nothing were in use, in amounts of
	// package quota.
	Resource                       string
	Earlier, Asked, Free, Capacity int64
}

// Missing returns how much more of the resource must become free.
func (v Verdict) Missing() int64 {
	return max(0, quota.Sub(quota.Add(v.Earlier, v.Asked), v.Free))
}

// Inadmissiblef returns a Reason to fix the object or its queue.
func Inadmissiblef(format string, args ...any) Reason {
	return Reason{Code: Inadmissible, Detail: fmt.Sprintf(format, args...)}
}

// refusedAdmission begins the message of a workload whose admission the API server rejected.
const refusedAdmission = "the API server refuses the admission, which is tried again with back-off, every 5 minutes at least: "

// RefusedAdmission returns the Reason of a workload whose admission the API server rejected with this message.
func RefusedAdmission(word string) Reason { return Inadmissiblef("%s%s", refusedAdmission, word) }

// RefusalIn returns what the API server said, if the message is that of a RefusedAdmission.
func RefusalIn(message string) (word string, is bool) {
	return strings.CutPrefix(message, refusedAdmission)
}

// IsRefusedAdmission reports whether the message is that of a RefusedAdmission. Only the operator that observed the
// rejection can derive this reason.
func IsRefusedAdmission(message string) bool { return strings.HasPrefix(message, refusedAdmission) }

// OnHoldf returns a Reason for a stopped queue.
func OnHoldf(format string, args ...any) Reason {
	return Reason{Code: OnHold, Detail: fmt.Sprintf(format, args...)}
}

// pendingEnd ends the message of a workload for which none was preempted now: what it lacks is held by others that were
// preempted before, are deleted or deactivated, or shrink. Who they are may change until their pods have ended.
const pendingEnd = ". Pending the end of pods of other workloads, which are being stopped"

// Message returns the message in one line, in the wording of the Workload API.
func (r Reason) Message() string {
	if r.PodSet == "" {
		return r.Detail
	}
	verdicts := make([]string, 0, len(r.Flavors))
	for _, v := range r.Flavors {
		verdicts = append(verdicts, v.message())
	}
	if len(verdicts) == 0 {
		verdicts = append(verdicts, r.Detail)
	}
	message := fmt.Sprintf("couldn't assign flavors to pod set %s: %s", r.PodSet, strings.Join(verdicts, ", "))
	if r.Code == ExceedsNodes {
		message += ". It never fits on these nodes, even if nothing else runs on them"
	}
	if r.Preempted > 0 {
		message += fmt.Sprintf(". Pending the preemption of %d workload(s)", r.Preempted)
	}
	if r.Ending > 0 {
		message += fmt.Sprintf(". Pending the end of %d workload(s), which was not preempted", r.Ending)
	}
	if r.Code == WaitingForPreemptedWorkloads && r.Preempted == 0 && r.Ending == 0 {
		message += pendingEnd
	}
	return message
}

func (v Verdict) message() string {
	switch {
	case v.Detail != "":
		return v.Detail
	case v.Code == ExceedsMaxQuota:
		return fmt.Sprintf("insufficient quota for %s in flavor %s, previously considered podsets requests (%s) + current podset request (%s) > maximum capacity (%s)",
			v.Resource, v.Flavor, v.text(v.Earlier), v.text(v.Asked), v.text(v.Capacity))
	default:
		return fmt.Sprintf("insufficient unused quota for %s in flavor %s, %s more needed",
			v.Resource, v.Flavor, v.text(v.Missing()))
	}
}

func (v Verdict) text(amount int64) string {
	q := quota.ToQuantity(corev1.ResourceName(v.Resource), amount)
	return q.String()
}

// Equal reports whether both reasons have the same code and message.
func (r Reason) Equal(other Reason) bool {
	return r.Code == other.Code && r.Message() == other.Message()
}
