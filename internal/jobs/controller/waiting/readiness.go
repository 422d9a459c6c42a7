package waiting

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// Readiness says when it is reported on a Workload that its pods have become ready. That is at once, except while the
// API server is overloaded: then not before Patience has passed since the admission, because only users wait for this
// condition, and a job that ends in the meantime never needs it. The zero value never holds it back.
type Readiness struct {
	// Busy reports whether writes that jobs need are waiting; nil means never.
	Busy func() bool
	// Patience must be well below the time that pods may take to become ready.
	Patience time.Duration
}

// readinessRetry is how long after a reconcile that found the API server busy the next one follows.
const readinessRetry = 10 * time.Second

// HoldBack returns the plan without a write that only reports readiness, as long as that can wait, and due when it is
// to be tried again.
func (r Readiness) HoldBack(p jobs.Plan, now time.Time) jobs.Plan {
	at := slices.IndexFunc(p.Writes, reportsReadinessOnly)
	if at < 0 || r.Busy == nil || !r.Busy() {
		return p
	}
	admitted := meta.FindStatusCondition(p.Writes[at].Seen().(*kueue.Workload).Status.Conditions, kueue.WorkloadAdmitted)
	latest := admitted.LastTransitionTime.Add(r.Patience)
	if !now.Before(latest) {
		return p
	}
	p.Writes = slices.Delete(slices.Clone(p.Writes), at, at+1)
	if again := now.Add(readinessRetry); again.Before(latest) {
		latest = again
	}
	p.DueBy(latest)
	return p
}

// reportsReadinessOnly reports whether the write changes nothing on an admitted Workload except to say that all its
// pods have become ready for the first time.
func reportsReadinessOnly(w write.Write) bool {
	before, after := reported(w)
	if before == nil || !meta.IsStatusConditionTrue(before.Status.Conditions, kueue.WorkloadAdmitted) ||
		meta.FindStatusCondition(before.Status.Conditions, kueue.WorkloadPodsReady) != nil {
		return false
	}
	ready := meta.FindStatusCondition(after.Status.Conditions, kueue.WorkloadPodsReady)
	if ready == nil || ready.Reason != kueue.WorkloadStarted {
		return false
	}
	same := after.DeepCopy()
	meta.RemoveStatusCondition(&same.Status.Conditions, kueue.WorkloadPodsReady)
	return equality.Semantic.DeepEqual(before.Status, same.Status)
}
