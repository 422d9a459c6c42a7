package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// Facts are what the fate of a Workload depends on beside itself.
type Facts struct {
	// LocalQueue that the Workload names, nil if there is none.
	LocalQueue *kueue.LocalQueue
	// ClusterQueue that the Workload holds quota of, or else the one behind its LocalQueue; nil if there is none.
	ClusterQueue *kueue.ClusterQueue
}

// Policy is what the administrator has decided.
type Policy struct {
	// PodsReady evicts Workloads whose pods are not ready in time. Nil: nobody.
	PodsReady *PodsReady
	// AfterFinished is how long finished Workloads are kept. Nil: as long as their job.
	AfterFinished *time.Duration
	// AfterDeactivated is how long Workloads are kept that were deactivated here, not by a person, and their jobs with
	// them. Nil: for ever.
	AfterDeactivated *time.Duration
}

// PodsReady says when pods must be ready, and what follows if they are not.
type PodsReady struct {
	// Timeout after the admission, and RecoveryTimeout after a failure.
	Timeout, RecoveryTimeout time.Duration
	// BackoffBase is the first wait before another try, doubled each time, and BackoffMax the longest.
	BackoffBase, BackoffMax time.Duration
	// BackoffLimit is the number of tries before the Workload is deactivated. Nil: no end.
	BackoffLimit *int32
}

// Step is the next write that a Workload needs: at most one of Status, Object and Delete.
type Step struct {
	// Status, unless nil, is the Workload with the status that it should have.
	Status *kueue.Workload
	// Object, unless nil, is the Workload with the spec and metadata that it should have.
	Object *kueue.Workload
	// Delete says what is to be deleted.
	Delete Deletion
	// Due is when to ask again though nothing has changed; zero: never.
	Due time.Time
}

// Writes reports whether there is anything to be written.
func (s Step) Writes() bool { return s.Status != nil || s.Object != nil || s.Delete != Nothing }

// Deletion says what is to be deleted.
type Deletion int

const (
	// Nothing is deleted.
	Nothing Deletion = iota
	// TheWorkload alone is deleted.
	TheWorkload
	// TheJob is deleted, and the Workload goes with it.
	TheJob
)

// Next is the step that the Workload needs now. The Workload and the facts are only read; what the step holds is a copy.
func Next(w *kueue.Workload, facts Facts, policy Policy, now time.Time) Step {
	d := &draft{facts: facts, policy: policy, now: now, w: w}
	switch {
	case !w.DeletionTimestamp.IsZero():
		return letGo(w)
	case workload.IsFinished(w):
		return d.finished()
	case orphaned(w):
		d.set(kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonOwnerNotFound, orphanedMessage)
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

// active brings on a Workload that nobody has deactivated.
func (d *draft) active() {
	running := workload.HoldsQuota(d.w) && !workload.IsEvicted(d.w)
	if running {
		d.listChecks()
	}
	if d.rejected() {
		return
	}
	if running && !d.retried() && !d.stopped() && !d.unready() && !d.overran() {
		d.admit()
	}
	if !workload.HoldsQuota(d.w) {
		d.requeue()
	}
}

// giveBack takes the quota from an evicted Workload that nobody else will take it from: it has no job that could say when
// its pods are gone. Who is evicted here gives it back with the eviction; this is for those whom somebody else evicted, or
// whose owners have left.
func (d *draft) giveBack() {
	if workload.IsEvicted(d.w) && workload.HoldsQuota(d.w) && !workload.IsOwned(d.w) {
		workload.GiveBack(d.edit(), d.now)
	}
}

// draft is a Workload on its way from what it is to what it should be. It is copied only if something changes: most have
// nothing to do, each time anybody looks.
type draft struct {
	facts  Facts
	policy Policy
	now    time.Time

	w       *kueue.Workload
	changed bool
	due     time.Time
}

// edit is the Workload to change.
func (d *draft) edit() *kueue.Workload {
	if !d.changed {
		d.w, d.changed = d.w.DeepCopy(), true
	}
	return d.w
}

// set sets a condition, unless it says so already. Another wording of the same reason is not worth a write.
func (d *draft) set(kind string, status metav1.ConditionStatus, reason, message string) {
	c := meta.FindStatusCondition(d.w.Status.Conditions, kind)
	if c == nil || c.Status != status || c.Reason != reason {
		workload.SetCondition(d.edit(), kind, status, reason, message, d.now)
	}
}

// reached reports whether a time has come. If not, the Workload is looked at again then.
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
