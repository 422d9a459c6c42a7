package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// Facts are the objects besides the Workload itself that its next step depends on.
type Facts struct {
	// LocalQueue is the one that the Workload names, nil if it does not exist.
	LocalQueue *kueue.LocalQueue
	// ClusterQueue is the one whose quota the Workload holds, or else that of its LocalQueue; nil if it does not
	// exist.
	ClusterQueue *kueue.ClusterQueue
	// PodsProblem says what kept the pods from being ready, "" if that is not known. It is in the message of an eviction
	// for that: the pods go, and their problem with them.
	PodsProblem string
}

// Policy is the part of the lifecycle that the administrator configures.
type Policy struct {
	// PodsReady evicts Workloads whose pods are not ready in time; nil disables that.
	PodsReady *PodsReady
	// BackoffMax is the longest backoff after pods were not ready, or were refused.
	BackoffMax time.Duration
	// AfterFinished is how long finished Workloads are kept; nil keeps them for as long as their job.
	AfterFinished *time.Duration
	// AfterDeactivated is how long Workloads that were deactivated here, not by a user, are kept with their jobs; nil
	// keeps them forever.
	AfterDeactivated *time.Duration
}

// PodsReady says by when pods must be ready, and what happens if they are not.
type PodsReady struct {
	// Timeout counts from the admission, RecoveryTimeout from a failure.
	Timeout, RecoveryTimeout time.Duration
	// BackoffBase is the first backoff, doubled for each further attempt up to the policy's BackoffMax.
	BackoffBase time.Duration
	// BackoffLimit is the number of attempts before the Workload is deactivated; nil is no limit.
	BackoffLimit *int32
}

// Step is the next write that a Workload needs: at most one of Status, Object and Delete is set.
type Step struct {
	// Status, unless nil, is the Workload with its new status.
	Status *kueue.Workload
	// Object, unless nil, is the Workload with its new spec and metadata.
	Object *kueue.Workload
	// Delete is what to delete.
	Delete Deletion
	// Due is when to call Next again even if nothing changes, zero for never.
	Due time.Time
}

// Writes reports whether the step has anything to write.
func (s Step) Writes() bool { return s.Status != nil || s.Object != nil || s.Delete != Nothing }

// Deletion is what a step deletes.
type Deletion int

const (
	// Nothing deletes nothing.
	Nothing Deletion = iota
	// TheWorkload deletes the Workload alone.
	TheWorkload
	// TheJob deletes the job, and the Workload is garbage-collected with it.
	TheJob
)

// Next returns the step that the Workload needs now. It does not modify the Workload or the facts; the step has
// copies.
func Next(w *kueue.Workload, facts Facts, policy Policy, now time.Time) Step {
	d := &draft{facts: facts, policy: policy, now: now, w: w}
	switch {
	case !w.DeletionTimestamp.IsZero():
		return removeFinalizer(w)
	case workload.IsFinished(w):
		return d.finished()
	case workload.IsOrphaned(w) && !workload.HoldsQuota(w):
		// package jobs/controller ends one with quota, once its pods are gone
		d.set(kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonOwnerNotFound,
			workload.OrphanedMessage)
	case !workload.IsActive(w):
		d.giveBack()
		d.deactivated()
		if d.expired() {
			return Step{Delete: jobOrWorkload(w)}
		}
	case workload.IsTrue(w, kueue.WorkloadDeactivationTarget):
		inactive := w.DeepCopy()
		inactive.Spec.Active = ptr.To(false)
		return Step{Object: inactive}
	default:
		d.giveBack()
		d.active()
	}
	return d.step()
}

// active computes the step of a Workload that is not deactivated.
func (d *draft) active() {
	running := workload.HoldsQuota(d.w) && !workload.IsEvicted(d.w)
	if running {
		d.listChecks()
	}
	if d.rejected() {
		return
	}
	if running && !d.retried() && !d.stopped() && !d.unready() && !d.exceededExecutionTime() {
		d.warnOfLimit()
		d.admit()
	}
	if !workload.HoldsQuota(d.w) {
		d.requeue()
	}
}

// giveBack releases the quota of an evicted Workload without owners, for which no job reports that its pods are gone.
// An eviction by the operator does that itself; this is for Workloads that another client evicted, or that lost their
// owners.
func (d *draft) giveBack() {
	if workload.IsEvicted(d.w) && workload.HoldsQuota(d.w) && !workload.IsOwned(d.w) {
		workload.GiveBack(d.edit(), d.now)
	}
}

// draft is a Workload that is being changed into its desired state. It is copied on the first change only: most calls
// of Next change nothing.
type draft struct {
	facts  Facts
	policy Policy
	now    time.Time

	w       *kueue.Workload
	changed bool
	due     time.Time
}

// edit returns the Workload for modification, a copy.
func (d *draft) edit() *kueue.Workload {
	if !d.changed {
		d.w, d.changed = d.w.DeepCopy(), true
	}
	return d.w
}

// set sets a condition, unless it has that status and reason already. A different message alone is not worth a write.
func (d *draft) set(kind string, status metav1.ConditionStatus, reason, message string) {
	c := meta.FindStatusCondition(d.w.Status.Conditions, kind)
	if c == nil || c.Status != status || c.Reason != reason {
		workload.SetCondition(d.edit(), kind, status, reason, message, d.now)
	}
}

// reached reports whether the time has come. If not, it makes the step due then.
func (d *draft) reached(at time.Time) bool {
	if !at.After(d.now) {
		return true
	}
	if d.due.IsZero() || at.Before(d.due) {
		d.due = at
	}
	return false
}

func (d *draft) step() Step {
	if !d.changed {
		return Step{Due: d.due}
	}
	return Step{Status: d.w, Due: d.due}
}
