package vcjob

import (
	"slices"

	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// planner plans one reconcile of a VCJob: it holds what was observed, and the plan so far.
type planner struct {
	seen jobs.Seen[*volcano.Job]
	// job is a copy whose status is updated, and whose size is within what a job may have.
	job     *volcano.Job
	tasks   map[string]*volcano.TaskSpec
	records podRecords
	roster  *replicas.Roster
	// usable caches isUsable by task, as long as the roster is the same.
	usable map[string]bool
	// effects caches plugins. What they make of all hosts they make once.
	effects []effect
	plan    jobs.Plan
	// createsPods is set if the plan creates pods.
	createsPods bool
	// failureWaits says that a policy with a timeout will act on a failed pod later.
	failureWaits bool
	// delayed are the names of pods that a policy will restart once the delay of its restart has passed.
	delayed map[string]bool
}

// plan returns what to do about a VCJob. A decision about the job's phase is written to the status
// first, and its consequences are left to the next reconcile, so that a failed write never makes it
// decide twice.
func plan(seen jobs.Seen[*volcano.Job]) jobs.Plan {
	l := newPlanner(seen)
	switch {
	case finished(l.job):
		l.deleteUnfinished()
		ended, ttl := l.job.Status.State.LastTransitionTime.Time, l.job.Spec.TTLSecondsAfterFinished
		l.plan.Expire(seen.Job, ended, ttl, seen.Now, metav1.DeletePropagationBackground)
	case l.executeCommand():
	default:
		l.step()
	}
	l.deleteCommands()
	l.reportMissingClass()
	l.report()
	l.plan.Progress = l.progress()
	l.job.Spec = seen.Job.Spec // if its size was changed, it stays as its user wrote it
	return l.plan
}

func newPlanner(seen jobs.Seen[*volcano.Job]) *planner {
	job := within(seen.Job.DeepCopy())
	l := &planner{seen: seen, job: job, tasks: make(map[string]*volcano.TaskSpec, len(job.Spec.Tasks)), records: readPodRecords(&job.Status), delayed: map[string]bool{}}
	for i := range job.Spec.Tasks {
		l.tasks[nameOf(job, i)] = &job.Spec.Tasks[i]
	}
	l.observe()
	return l
}

// step advances a job that has not finished.
func (pl *planner) step() {
	switch pl.job.Status.State.Phase {
	case volcano.Aborting:
		pl.deleteUnfinished()
		pl.setPhaseOnceInactive(volcano.Aborted, "Aborted", "All pods are stopped; a Command ResumeJob starts the job again")
	case volcano.Aborted:
		pl.deleteUnfinished()
	case volcano.Completing:
		pl.deleteUnfinished()
		pl.setPhaseOnceInactive(volcano.Completed, pl.job.Status.State.Reason, pl.job.Status.State.Message)
	case volcano.Terminating:
		pl.deleteUnfinished()
		pl.setPhaseOnceInactive(volcano.Terminated, pl.job.Status.State.Reason, pl.job.Status.State.Message)
	case volcano.Restarting:
		pl.awaitRestart()
	default:
		if !pl.seen.Admission.MayRun() {
			pl.hold()
			return
		}
		if pl.job.Status.State.Reason == admittedAnewReason {
			return // its Workload is being deleted
		}
		if !pl.completeAtMinSuccess() && !pl.react() && (pl.failureWaits || !pl.finishWhenAllEnded()) {
			pl.run()
		}
	}
}

// hold deletes the unfinished pods of a job that may not run, and reports what the job waits for.
// Finished pods stay: they hold no resources and do not run again.
func (pl *planner) hold() {
	pl.deleteUnfinished()
	reason, message := pl.waitingReason()
	if pl.job.Status.State.Phase != volcano.Pending {
		pl.setDerivedPhase(volcano.Pending, reason, message)
		return
	}
	pl.job.Status.State.Reason, pl.job.Status.State.Message = reason, message
}

// run advances a job that may run towards its spec.
func (pl *planner) run() {
	pl.plan.DeletePods(pl.roster.Outdated())
	if pl.deleteExcess() {
		return
	}
	if pl.requeue() {
		return
	}
	if pl.seen.Admission.MayStart() {
		pl.updateHosts()
		pl.createPods()
		jobs.JoinGangs(pl.seen, kind, pl.least(), &pl.plan)
	}
	reason, message := pl.startingState()
	phase, running := pl.job.Status.State.Phase, pl.enoughRun()
	switch {
	case phase != volcano.Running && running:
		pl.setDerivedPhase(volcano.Running, runningReason, runningMessage)
	case phase != volcano.Pending && !running:
		pl.setDerivedPhase(volcano.Pending, reason, message)
	case phase == volcano.Pending:
		pl.job.Status.State.Reason, pl.job.Status.State.Message = reason, message
	case reason == muster.RefusedReason: // enough pods run, but not all
		pl.job.Status.State.Reason, pl.job.Status.State.Message = reason, message
	case pl.job.Status.State.Reason == taskWithoutQuotaReason, pl.job.Status.State.Reason == muster.RefusedReason:
		pl.job.Status.State.Reason, pl.job.Status.State.Message = runningReason, runningMessage
	}
	pl.reportTaskWithoutQuota()
}

// enoughRun reports whether as many pods run, or have ended, as the job's minimum. A job that runs goes on doing so while
// the state of pods is unknown: their nodes may only be out of reach.
func (pl *planner) enoughRun() bool {
	up := pl.count("", replicas.Running, replicas.Succeeded, replicas.Failed)
	if pl.job.Status.State.Phase == volcano.Running {
		up += pl.count("", replicas.Unknown)
	}
	return totalOf(pl.job) > 0 && up >= minAvailable(pl.job)
}

// Reasons and messages of jobs that are admitted, before and after enough of their pods run.
const (
	startingReason, startingMessage = "Starting", "Pods are being started"
	runningReason, runningMessage   = "Running", "Enough pods run"
)

// startingState returns the reason and message for an admitted job with too few running pods.
func (pl *planner) startingState() (reason, message string) {
	if totalOf(pl.job) == 0 {
		return volcano.NoPods, "No task has replicas, so there is nothing to start"
	}
	if refused := pl.seen.RefusedObjects.Message(); refused != "" {
		return muster.RefusedReason, refused
	}
	return startingReason, startingMessage
}

// awaitRestart waits until no outdated pod is left. A job that has used up its restarts has failed instead.
func (pl *planner) awaitRestart() {
	if pl.job.Status.RetryCount >= maxRetry(pl.job) {
		pl.setPhase(volcano.Failed, "MaxRetry", pl.maxRetryMessage())
		return
	}
	pl.plan.DeletePods(pl.roster.Outdated())
	if !pl.seen.Admission.MayRun() {
		pl.deleteUnfinished()
	}
	if len(pl.roster.Surplus) > 0 || !pl.roster.All(func(r *replicas.Replica) bool { return r.Pod == nil || r.UID() != "" }) {
		return
	}
	pl.setDerivedPhase(volcano.Pending, "Restarted", pl.job.Status.State.Message)
}

// count returns how many pods of the task, or of all tasks if it is "", are in one of the phases.
func (pl *planner) count(task string, phases ...replicas.Phase) int32 {
	members := pl.roster.Replicas
	if task != "" {
		members = pl.roster.Group(task)
	}
	return replicas.Count(members, func(r *replicas.Replica) bool { return slices.Contains(phases, r.Phase) })
}

// deleteUnfinished deletes all pods that have not finished.
func (pl *planner) deleteUnfinished() { pl.plan.DeletePods(pl.roster.Pods(true)) }
