package waiting

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// statusDelay is how long a status that reports only counts is held back, unless the API says otherwise. The children
// of a large job change one by one, and a write for each of them would be most of what the job costs.
const statusDelay = time.Second

// While the API server is overloaded, a status with StatusYields is held back for up to busyStatusDelay: by then most
// jobs have more to report in the same write. Every busyStatusCheck it is checked whether the API server still is.
const (
	busyStatusDelay = 30 * time.Second
	busyStatusCheck = 5 * time.Second
)

// StatusDelayOf returns how long the plan's status may be held back.
func StatusDelayOf(p jobs.Plan, every time.Duration, busy bool) time.Duration {
	switch {
	case p.StatusFirst:
		return 0
	case p.StatusYields && busy:
		return busyStatusDelay
	case p.StatusCanWait:
		return cmp.Or(every, statusDelay)
	}
	return 0
}

// Deferrals holds when the write of a job that can wait is due. If that is lost with the process, the write is done at
// once or a second later.
type Deferrals struct{ Memory[time.Time] }

// HoldBackStatus returns the plan without its status and the events that belong to it, as long as these can wait, and
// due when they cannot any longer.
func (d *Deferrals) HoldBackStatus(job client.Object, p jobs.Plan, patience time.Duration, now time.Time) jobs.Plan {
	key := client.ObjectKeyFromObject(job)
	if p.Status == nil || patience == 0 || equality.Semantic.DeepEqual(job, p.Status) {
		if p.Status != nil {
			d.Forget(key) // it is written with this plan, or nothing is left to report
		}
		return p
	}
	due := d.dueAt(job, now.Add(patience))
	if !now.Before(due) {
		d.Forget(key)
		return p
	}
	p.Status = nil
	p.Events = slices.DeleteFunc(p.Events, func(e write.Event) bool { return e.WithStatus })
	if check := now.Add(busyStatusCheck); check.Before(due) {
		due = check
	}
	p.DueBy(due)
	return p
}

// HoldBackReclaims returns the plan without a write that only returns the quota of pods that have ended, as long as
// that can wait: the pods of a job often end together.
func (d *Deferrals) HoldBackReclaims(job client.Object, p jobs.Plan, now time.Time) jobs.Plan {
	key := client.ObjectKeyFromObject(job)
	if !slices.ContainsFunc(p.Writes, reclaimsPodsOnly) {
		d.Forget(key)
		return p
	}
	due := d.dueAt(job, now.Add(statusDelay))
	if !now.Before(due) {
		d.Forget(key)
		return p
	}
	p.Writes = slices.DeleteFunc(p.Writes, reclaimsPodsOnly)
	p.DueBy(due)
	return p
}

// WithStatusBeforeReclaims returns the plan with its status before its writes if one of them returns the quota of pods
// that have ended. The status may be the only record of these ends: without it, a pod that is deleted before it was
// recorded would be run again, with quota that others have by then.
func WithStatusBeforeReclaims(p jobs.Plan) jobs.Plan {
	if p.Status != nil && p.StatusOnError == nil && slices.ContainsFunc(p.Writes, reclaimsPods) {
		p.StatusFirst, p.StatusCanWait = true, false
	}
	return p
}

// reclaimsPods reports whether the write reports on a Workload that pods have ended.
func reclaimsPods(w write.Write) bool {
	before, after := reported(w)
	return before != nil && !equality.Semantic.DeepEqual(before.Status.ReclaimablePods, after.Status.ReclaimablePods)
}

// reclaimsPodsOnly reports whether the write reports on a Workload only that pods have ended.
func reclaimsPodsOnly(w write.Write) bool {
	before, after := reported(w)
	if before == nil {
		return false
	}
	same := after.Status
	same.ReclaimablePods = before.Status.ReclaimablePods
	return equality.Semantic.DeepEqual(before.Status, same)
}

// reported returns the Workload before and after a write that changes its status, nil for any other write.
func reported(w write.Write) (before, after *kueue.Workload) {
	if w.Verb() != write.VerbChangeStatus || !w.IsToWorkload() {
		return nil, nil
	}
	return w.Seen().(*kueue.Workload), w.Object().(*kueue.Workload)
}

// dueAt returns when the job's write is due: at latest, or earlier if the write has been waiting already.
func (d *Deferrals) dueAt(job client.Object, latest time.Time) time.Time {
	due := d.Get(job)
	if due.IsZero() || latest.Before(due) {
		due = latest
		d.Set(job, due)
	}
	return due
}
