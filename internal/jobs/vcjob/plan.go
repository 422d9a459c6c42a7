package vcjob

import (
	"slices"

	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
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
		l.expire()
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
func (l *planner) step() {
	switch l.job.Status.State.Phase {
	case volcano.Aborting:
		l.deleteUnfinished()
		l.setPhaseOnceInactive(volcano.Aborted, "Aborted", "All pods are stopped; a Command ResumeJob starts the job again")
	case volcano.Aborted:
		l.deleteUnfinished()
	case volcano.Completing:
		l.deleteUnfinished()
		l.setPhaseOnceInactive(volcano.Completed, l.job.Status.State.Reason, l.job.Status.State.Message)
	case volcano.Terminating:
		l.deleteUnfinished()
		l.setPhaseOnceInactive(volcano.Terminated, l.job.Status.State.Reason, l.job.Status.State.Message)
	case volcano.Restarting:
		l.awaitRestart()
	default:
		if !l.seen.Admission.MayRun() {
			l.hold()
			return
		}
		if l.job.Status.State.Reason == admittedAnewReason {
			return // its Workload is being deleted
		}
		if !l.completeAtMinSuccess() && !l.react() && (l.failureWaits || !l.finishWhenAllEnded()) {
			l.run()
		}
	}
}

// hold deletes the unfinished pods of a job that may not run, and reports what the job waits for.
// Finished pods stay: they hold no resources and do not run again.
func (l *planner) hold() {
	l.deleteUnfinished()
	reason, message := l.waitingReason()
	if l.job.Status.State.Phase != volcano.Pending {
		l.setDerivedPhase(volcano.Pending, reason, message)
		return
	}
	l.job.Status.State.Reason, l.job.Status.State.Message = reason, message
}

// run advances a job that may run towards its spec.
func (l *planner) run() {
	l.plan.DeletePods(l.roster.Outdated())
	if l.deleteExcess() {
		return
	}
	if l.requeue() {
		return
	}
	if l.seen.Admission.MayStart() {
		l.updateHosts()
		l.createPods()
		jobs.JoinGangs(l.seen, kind, l.least(), &l.plan)
	}
	reason, message := l.startingState()
	phase, running := l.job.Status.State.Phase, l.enoughRun()
	switch {
	case phase != volcano.Running && running:
		l.setDerivedPhase(volcano.Running, runningReason, runningMessage)
	case phase != volcano.Pending && !running:
		l.setDerivedPhase(volcano.Pending, reason, message)
	case phase == volcano.Pending:
		l.job.Status.State.Reason, l.job.Status.State.Message = reason, message
	case reason == muster.RefusedReason: // enough pods run, but not all
		l.job.Status.State.Reason, l.job.Status.State.Message = reason, message
	case l.job.Status.State.Reason == taskWithoutQuotaReason, l.job.Status.State.Reason == muster.RefusedReason:
		l.job.Status.State.Reason, l.job.Status.State.Message = runningReason, runningMessage
	}
	l.reportTaskWithoutQuota()
}

// enoughRun reports whether as many pods run, or have ended, as the job's minimum. A job that runs goes on doing so while
// the state of pods is unknown: their nodes may only be out of reach.
func (l *planner) enoughRun() bool {
	up := l.count("", replicas.Running, replicas.Succeeded, replicas.Failed)
	if l.job.Status.State.Phase == volcano.Running {
		up += l.count("", replicas.Unknown)
	}
	return totalOf(l.job) > 0 && up >= minAvailable(l.job)
}

// Reasons and messages of jobs that are admitted, before and after enough of their pods run.
const (
	startingReason, startingMessage = "Starting", "Pods are being started"
	runningReason, runningMessage   = "Running", "Enough pods run"
)

// startingState returns the reason and message for an admitted job with too few running pods.
func (l *planner) startingState() (reason, message string) {
	if totalOf(l.job) == 0 {
		return volcano.NoPods, "No task has replicas, so there is nothing to start"
	}
	if refused := l.seen.RefusedObjects.Message(); refused != "" {
		return muster.RefusedReason, refused
	}
	return startingReason, startingMessage
}

// awaitRestart waits until no outdated pod is left. A job that has used up its restarts has failed instead.
func (l *planner) awaitRestart() {
	if l.job.Status.RetryCount >= maxRetry(l.job) {
		l.setPhase(volcano.Failed, "MaxRetry", l.maxRetryMessage())
		return
	}
	l.plan.DeletePods(l.roster.Outdated())
	if !l.seen.Admission.MayRun() {
		l.deleteUnfinished()
	}
	if len(l.roster.Surplus) > 0 || !l.roster.All(func(r *replicas.Replica) bool { return r.Pod == nil || r.UID() != "" }) {
		return
	}
	l.setDerivedPhase(volcano.Pending, "Restarted", l.job.Status.State.Message)
}

// count returns how many pods of the task, or of all tasks if it is "", are in one of the phases.
func (l *planner) count(task string, phases ...replicas.Phase) (n int32) {
	members := l.roster.Replicas
	if task != "" {
		members = l.roster.Group(task)
	}
	for i := range members {
		if slices.Contains(phases, members[i].Phase) {
			n++
		}
	}
	return n
}

// deleteUnfinished deletes all pods that have not finished.
func (l *planner) deleteUnfinished() { l.plan.DeletePods(l.roster.Pods(true)) }
