package reason

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/quota"
)

// Code is the machine-readable reason; it becomes the reason of the condition
// QuotaReserved while that is False. docs/reasons.md has one entry for each.
type Code string

const (
	// None means that nothing keeps the workload waiting.
	None Code = ""
	// Inadmissible: the object or its queue is at fault, and waiting alone will
	// not mend it.
	Inadmissible Code = "Inadmissible"
	// Deactivated: somebody has set spec.active of the workload to false.
	Deactivated Code = "Deactivated"
	// OnHold: a queue is stopped by its stopPolicy.
	OnHold Code = "OnHold"
	// PendingEvaluation: it is not in its queue yet, or not again.
	PendingEvaluation Code = "PendingEvaluation"
	// AdmissionGated: an annotation holds it back.
	AdmissionGated Code = "AdmissionGated"
	// WaitingForPodsReady: admitted workloads must have their pods ready first.
	WaitingForPodsReady Code = "WaitingForPodsReady"
	// WaitingForPreemptedWorkloads: others were told to go for it, and have not gone yet.
	WaitingForPreemptedWorkloads Code = "WaitingForPreemptedWorkloads"
	// NoMatchingFlavor: no flavor of the queue offers the resources to these pods.
	NoMatchingFlavor Code = "NoMatchingFlavor"
	// ExceedsMaxQuota: more is asked than the queue could give if it were empty.
	ExceedsMaxQuota Code = "ExceedsMaxQuota"
	// TopologyPlacementFailed: there is quota for it, and no room on the nodes for all of it
	// as near together as it asks.
	TopologyPlacementFailed Code = "TopologyPlacementFailed"
	// WaitingForQuota: it would fit, once others have given back what they hold.
	WaitingForQuota Code = "WaitingForQuota"
)

// Blames reports whether the message of such a reason names what somebody has to mend. That does not change by itself, as amounts
// do, and who is told of another thing than is to blame now mends the wrong one.
func (c Code) Blames() bool {
	return c == Inadmissible || c == OnHold || c == AdmissionGated || c == NoMatchingFlavor
}

// Reason is why one workload waits. The zero value says that nothing holds it.
type Reason struct {
	Code Code
	// Detail is the whole message where no pod set is to blame.
	Detail string
	// PodSet names the first pod set that could not be assigned, and Flavors says
	// for each flavor tried what was wrong with it, in the order of the queue.
	PodSet  string
	Flavors []Verdict
	// Preempted is how many were told to go for it.
	Preempted int
}

// Verdict is what one flavor said to one pod set.
type Verdict struct {
	Flavor string
	Code   Code
	// Detail is the message where the numbers below are not what decided.
	Detail string
	// Resource is the one that was short; Earlier and Asked are what the pod sets
	// before this one and this one ask of it, Free is what the queue could take
	// now, and Capacity what it could take if nobody used anything. In amounts of
	// package quota.
	Resource                       string
	Earlier, Asked, Free, Capacity int64
}

// Missing is how much more of the resource must become free.
func (v Verdict) Missing() int64 {
	return max(0, quota.Sub(quota.Add(v.Earlier, v.Asked), v.Free))
}

// Inadmissiblef is a Reason whose fault lies with the object or its queue.
func Inadmissiblef(format string, args ...any) Reason {
	return Reason{Code: Inadmissible, Detail: fmt.Sprintf(format, args...)}
}

// refusedAdmission begins the message of who is not admitted because the API server would not have it.
const refusedAdmission = "the API server refuses the admission, which is tried again with back-off, every 5 minutes at least: "

// RefusedAdmission is the Reason of who is not admitted because the API server would not have it, with its word.
func RefusedAdmission(word string) Reason { return Inadmissiblef("%s%s", refusedAdmission, word) }

// IsRefusedAdmission recognises the message of such a Reason: what only the operator knows, which was told.
func IsRefusedAdmission(message string) bool { return strings.HasPrefix(message, refusedAdmission) }

// OnHoldf is a Reason for a stopped queue.
func OnHoldf(format string, args ...any) Reason {
	return Reason{Code: OnHold, Detail: fmt.Sprintf(format, args...)}
}

// Message is the one-line form, in the words that users of the Workload API know.
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
	if r.Preempted > 0 {
		message += fmt.Sprintf(". Pending the preemption of %d workload(s)", r.Preempted)
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

// Equal reports whether two reasons would read the same.
func (r Reason) Equal(other Reason) bool {
	return r.Code == other.Code && r.Message() == other.Message()
}
