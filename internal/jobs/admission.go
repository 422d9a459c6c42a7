package jobs

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/podspec"
)

// Grant says whether a job may have pods.
type Grant string

const (
	// Unqueued jobs run as they are, without a queue.
	Unqueued Grant = "Unqueued"
	// Waiting jobs have no quota yet and must have no pods.
	Waiting Grant = "Waiting"
	// Admitted jobs run with the PodSets that they were given.
	Admitted Grant = "Admitted"
	// Stopping jobs have lost their admission and must terminate their pods.
	Stopping Grant = "Stopping"
)

// Admission is what a job was granted.
type Admission struct {
	Grant Grant
	// PodSets has an entry for each pod set of an Admitted job, by name.
	PodSets map[string]PodSetAdmission
	// Why is the queue's message about a Waiting job, "" if there is none yet.
	Why string
	// UnreadySince is since when not all pods of an Admitted job have been ready, according to its Workload. Zero if
	// all are.
	UnreadySince time.Time
	// Until is when the queue of an Admitted job wants its quota back, zero for never. Bound is how long after the
	// admission that is, and BoundSource says which annotation of which queue sets it.
	Until       time.Time
	Bound       time.Duration
	BoundSource string
	// MissingFlavor is a flavor that was assigned to an Admitted job and does not exist, "" if there is none.
	MissingFlavor string
	// Deactivated says that the job's Workload is not admitted until it is activated again.
	Deactivated bool
	// Conflict says which pod set update of an admission check cannot be applied to the pods of an Admitted job, "" if
	// all can.
	Conflict string
	// NeedsDigest is the digest, by NeedsDigest, of what the job's pods needed when an Admitted job was queued; "" if
	// it was not recorded.
	NeedsDigest string
}

// MayRun reports whether the job may have pods.
func (a Admission) MayRun() bool { return a.Grant == Unqueued || a.Grant == Admitted }

// HoldsQuota reports whether quota is held for the job's pods: while they run, and while they terminate.
func (a Admission) HoldsQuota() bool { return a.Grant == Admitted || a.Grant == Stopping }

// MayStart reports whether new pods may be created: the job may run, and all that has to be added to its pods is known.
// Running pods are not affected by a missing flavor.
func (a Admission) MayStart() bool {
	return a.MayRun() && a.MissingFlavor == "" && a.Conflict == ""
}

// PodSetAdmission is what a pod set was granted.
type PodSetAdmission struct {
	// Count is how many pods were admitted.
	Count int32
	// Asked is how many pods the Workload asks for. Left is how many pods it has quota for now: not the pods that were not
	// admitted, nor the pods whose quota was reclaimed.
	Asked, Left int32
	// Template is the pod template as it was admitted, which is what the quota is for, even if the job's own template
	// has changed since.
	Template *corev1.PodTemplateSpec
	// Injection applies to every pod of the set. For returns it with what depends on a pod's rank.
	podspec.Injection
	// Places holds the places of the pods in rank order. Empty if the pod set is not placed.
	Places podspec.Places

	// Pods is the admitted spec of pods that have places.
	Pods corev1.PodSpec
	// Nodes holds the nodes of the places.
	Nodes Nodes
	// SliceSize is the size of the smallest slices that must each lie in one domain, 0 if there are none.
	SliceSize int32
	// Tied says that slices or a group keep the pod set from growing until its next admission.
	Tied bool
}
