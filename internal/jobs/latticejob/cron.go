package latticejob

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/jobs/latticejob/schedule"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// Reasons of events of jobs with a schedule.
const (
	runStartedReason  = "RunStarted"
	runReplacedReason = "RunReplaced"
	runRefusedReason  = "RunRefused"
)

// hasSchedule reports whether the job runs repeatedly; its runs are LatticeJobs that it creates.
func hasSchedule(job *lattice.LatticeJob) bool { return job.Spec.Schedule != "" }

// planSchedule creates the runs of the schedule. A job with a schedule never ends, unless its first spec
// cannot be compiled.
func (p *planner) planSchedule() {
	times, err := schedule.Parse(p.job.Spec.Schedule)
	if err == nil {
		err = p.compileError()
	}
	switch {
	case err != nil && p.job.Status.Phase != lattice.Running:
		p.status.setStatus(lattice.Failed, fmt.Sprintf(lattice.CompileFailedMessage, err), ptr.To(p.job.Generation),
			write.Warning(compileFailedReason, err.Error()))
		return
	case times == schedule.Schedule{}:
		// The schedule was changed to an invalid one: the status says so, and runs resume once it is fixed.
		last := p.job.Status.LastScheduleTime
		p.status.setStatus(lattice.Running, err.Error(), ptr.To(p.job.Generation),
			write.Warning(compileFailedReason, err.Error()))
		p.job.Status.LastScheduleTime = last
		return
	}
	runs := jobs.ChildrenOf[*lattice.LatticeJob](p.seen.Children)
	slices.SortFunc(runs, func(a, b *lattice.LatticeJob) int {
		return cmp.Or(scheduledAt(a).Compare(scheduledAt(b)), cmp.Compare(a.Name, b.Name))
	})
	active := slices.DeleteFunc(slices.Clone(runs), hasOutcome)
	last := p.lastRun(runs)
	p.deleteOldRuns(runs, lattice.Succeeded,
		ptr.Deref(p.job.Spec.SuccessfulJobsHistoryLimit, lattice.DefaultSuccessfulJobsHistoryLimit))
	p.deleteOldRuns(runs, lattice.Failed,
		ptr.Deref(p.job.Spec.FailedJobsHistoryLimit, lattice.DefaultFailedJobsHistoryLimit))
	running := len(active)
	if due := p.due(times, last); !due.IsZero() &&
		!(p.job.Spec.ConcurrencyPolicy == lattice.ForbidConcurrent && running > 0) {
		if p.job.Spec.ConcurrencyPolicy == lattice.ReplaceConcurrent {
			running = 0
			for _, run := range active {
				p.stop(run)
			}
		}
		p.begin(runOf(p.job, due), due, running, last)
		last = due
		running++
	}
	if !ptr.Deref(p.job.Spec.Suspend, false) {
		p.plan.Due = times.Next(p.seen.Now)
	}
	p.status.reportRuns(running, last)
}

// compileError returns why no run can be compiled, nil if one can. Each run waits by itself for what does
// not exist yet.
func (v *view) compileError() error {
	_, err := compile.Compile(runOf(v.job, v.seen.Now), v.facts(v.job, v.seen.Facts, v.seen.Related))
	var missing *compile.MissingServiceError
	if errors.As(err, &missing) {
		return nil
	}
	return err
}

// lastRun returns the last scheduled time for which a run was created; zero if none. It uses both the
// status and the runs: the status may lack the newest run, and runs may have been deleted.
func (v *view) lastRun(runs []*lattice.LatticeJob) time.Time {
	var last time.Time
	if recorded := v.job.Status.LastScheduleTime; recorded != nil {
		last = recorded.Time
	}
	for _, run := range runs {
		if at := scheduledAt(run); at.After(last) {
			last = at
		}
	}
	return last
}

// maxDeadlineSeconds is a hundred years in seconds; a time.Duration cannot hold much more.
const maxDeadlineSeconds = 100 * 366 * 24 * 60 * 60

// due returns the scheduled time for which to create a run now; zero if none. If several were missed, it is the last.
func (v *view) due(times schedule.Schedule, last time.Time) time.Time {
	if ptr.Deref(v.job.Spec.Suspend, false) {
		return time.Time{}
	}
	after := v.job.CreationTimestamp.Time
	if last.After(after) {
		after = last
	}
	if deadline := v.job.Spec.StartingDeadlineSeconds; deadline != nil {
		// A run is still in time within the last second of its deadline.
		late := time.Duration(min(*deadline, maxDeadlineSeconds)+1) * time.Second
		if earliest := v.seen.Now.Add(-late); earliest.After(after) {
			after = earliest
		}
	}
	return times.Last(after, v.seen.Now)
}

// begin creates the run that is due. If that fails, the previous status is kept, so that the run is tried again.
func (p *planner) begin(run *lattice.LatticeJob, due time.Time, running int, last time.Time) {
	before := p.runsStatus(running, last)
	event := write.Normal(runStartedReason, fmt.Sprintf("Created run %s, scheduled for %s", run.Name, stamp(due)))
	p.plan.Add(write.Create(run).WithEvent(event).OrWarn(runRefusedReason).OrRevert(func(status client.Object) {
		status.(*lattice.LatticeJob).Status = before
	}))
}

// stop deletes an earlier run to make way for the next.
func (p *planner) stop(run *lattice.LatticeJob) {
	if !run.DeletionTimestamp.IsZero() {
		return
	}
	event := write.Normal(runReplacedReason, fmt.Sprintf("Run %s is stopped: the next is due", run.Name))
	p.plan.Add(write.Delete(run).WithEvent(event))
}

// deleteOldRuns deletes the oldest runs that have ended in the phase, beyond the number to keep.
func (p *planner) deleteOldRuns(runs []*lattice.LatticeJob, phase lattice.JobPhase, keep int32) {
	runs = slices.DeleteFunc(slices.Clone(runs), func(run *lattice.LatticeJob) bool {
		return run.Status.Phase != phase || !run.DeletionTimestamp.IsZero()
	})
	for _, run := range runs[:max(0, len(runs)-int(max(0, keep)))] {
		p.plan.Add(write.Delete(run))
	}
}

// reportRuns sets the status to how many runs are active, and to the last scheduled time that was run.
func (rep *reporter) reportRuns(running int, last time.Time) {
	status := rep.runsStatus(running, last)
	var event []write.Event
	if rep.job.Status.Phase != lattice.Running {
		event = []write.Event{write.Normal(submittedReason, status.Message)}
	}
	rep.setStatus(status.Phase, status.Message, status.ObservedGeneration, event...)
	rep.job.Status.LastScheduleTime = status.LastScheduleTime
}

// runsStatus returns the status of a job with a schedule.
func (v *view) runsStatus(running int, last time.Time) lattice.LatticeJobStatus {
	status := lattice.LatticeJobStatus{Phase: lattice.Running, Message: lattice.CronSubmittedMessage,
		ObservedGeneration: ptr.To(v.job.Generation)}
	v.setTimes(&status)
	when := "never"
	if !last.IsZero() {
		when, status.LastScheduleTime = stamp(last), ptr.To(metav1.NewTime(last))
	}
	if v.job.Status.Phase == lattice.Running {
		status.Message = fmt.Sprintf(lattice.CronActiveMessage, running, when)
		if ptr.Deref(v.job.Spec.Suspend, false) {
			status.Message += ", suspended"
		}
	}
	return status
}

// runOf returns the run of the job for a scheduled time. Its name holds the time, so that there are never two for one.
func runOf(job *lattice.LatticeJob, at time.Time) *lattice.LatticeJob {
	labels := podspec.Merged(job.Labels, map[string]string{lattice.CronJobLabel: job.Name})
	annotations := map[string]string{lattice.ScheduledAtAnnotation: stamp(at)}
	maps.Copy(annotations, compile.Domains(job.Annotations))
	if gate := gateOf(job); gate != "" {
		annotations[kueue.AdmissionGatedByAnnotation] = gate
	}
	if estimate := estimateOf(job); estimate != "" {
		annotations[muster.ExpectedDurationAnnotation] = estimate
	}
	run := &lattice.LatticeJob{
		ObjectMeta: replicas.Owned(job, kind, fmt.Sprintf("%s-%d", job.Name, at.Unix()/60), labels),
		Spec:       *job.Spec.DeepCopy(),
	}
	run.Annotations = annotations
	run.Spec.CronSpec = lattice.CronSpec{}
	return run
}

// scheduledAt returns the scheduled time of the run; its creation time if the annotation was removed.
func scheduledAt(run *lattice.LatticeJob) time.Time {
	at, err := time.Parse(time.RFC3339, run.Annotations[lattice.ScheduledAtAnnotation])
	if err != nil {
		return run.CreationTimestamp.Time
	}
	return at
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
