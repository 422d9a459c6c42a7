package model

import (
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Decision is one change to make: exactly one of Admit, Try, Replace, Resize, Evict, Withdraw and Why is set.
type Decision struct {
	Key Key
	// UID and Generation are those of the workload that was decided on: an admission must not be written to a later
	// workload of the same name, nor for another spec.
	UID        string
	Generation int64
	// Serial identifies the decision, so that its result is not attributed to a later decision about the same
	// workload. For Withdraw it is the serial of the admission that is withdrawn; it is 0 for Why, whose result is
	// not reported.
	Serial int64
	// Urgency is the priority of the workload for which the decision was made, which is another workload in the case
	// of a preemption, and the highest one if nodes failed: of several decisions, the most urgent is to be written
	// first.
	Urgency int32
	// Admit gives the workload quota, and the places with it. It is assumed at once; Failed rolls it back.
	Admit *Admission
	// Try asks whether the API server would accept this admission, which it rejected before: others are to be evicted
	// for the workload. Nothing is assumed. Tried, Refused or Failed answers it.
	Try *Admission `json:",omitempty"`
	// Replace gives pods of the workload new places because the old ones are no longer valid. It is the whole
	// admission, in which only places differ. It is assumed at once; Failed rolls it back.
	Replace *Admission
	// Resize gives the workload, which keeps running, more or fewer pods. It is assumed at once; Failed rolls it
	// back.
	Resize *Resize
	// Evict tells the workload to release its quota, and says for which workload. It is assumed at once; Failed rolls
	// it back.
	Evict *Eviction
	// Lost are, if Evict or Resize is for a workload that holds quota and lost places, the nodes of these.
	Lost []string `json:",omitempty"`
	// Withdraw cancels the admission of the workload if its write has not begun, which Failed then reports. Otherwise
	// the result of the write is reported as usual.
	Withdraw bool
	// Why is a new reason for which the workload waits.
	Why reason.Reason
}

// Resize is a new size for a running workload.
type Resize struct {
	// Admission is everything that the workload holds after the resize. The usage of pods that have to terminate is
	// the Surplus of their pod set until they are gone.
	Admission *Admission
	// PodSet is the pod set whose size changes; From and To are its pods before and after.
	PodSet   string
	From, To int32
	// For is the workload that needs the capacity of the removed pods. It is zero for growth, for pods whose places
	// are no longer valid, which Detail then explains, and for Unwanted pods, which are removed because the job wants
	// fewer.
	For      Key
	Detail   string
	Unwanted bool
}

// Eviction says for which workload, and why, a workload is evicted.
type Eviction struct {
	// Preemptor is the workload that needs the capacity; it is zero if nodes failed.
	Preemptor    Key
	PreemptorUID string
	Cause        preempt.Cause
	// PreemptorPath and Path lead from the root cohort to the ClusterQueue of the preemptor and of the evicted
	// workload, as in /lab/team/queue.
	PreemptorPath, Path string
	// Detail is a message for users that adds to the other fields.
	Detail string
}
