package vcjob

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// look is one reconcile of a VCJob: what was observed, and the plan so far.
type look struct {
	seen jobs.Seen[*volcano.Job]
	// job is a copy whose status is updated.
	job    *volcano.Job
	tasks  map[string]*volcano.TaskSpec
	memory memory
	roster *replicas.Roster
	plan   jobs.Plan
	// made says that the plan creates pods.
	made bool
	// failureWaits says that a policy with a timeout will act on a failed pod later.
	failureWaits bool
}

// plan returns what to do about a VCJob. A decision about the job's phase is written to the status
// first, and its consequences are left to the next reconcile, so that a failed write never makes it
// decide twice.
func plan(seen jobs.Seen[*volcano.Job]) jobs.Plan {
	l := newLook(seen)
	switch {
	case finished(l.job):
		l.deleteUnfinished()
		l.expire()
	case l.obey():
	default:
		l.step()
	}
	l.dropCommands()
	l.report()
	l.plan.Progress = l.progress()
	return l.plan
}

func newLook(seen jobs.Seen[*volcano.Job]) *look {
	job := seen.Job.DeepCopy()
	l := &look{seen: seen, job: job, tasks: make(map[string]*volcano.TaskSpec, len(job.Spec.Tasks)), memory: readMemory(&job.Status)}
	for i := range job.Spec.Tasks {
		l.tasks[nameOf(job, i)] = &job.Spec.Tasks[i]
	}
	l.roster = replicas.Observe(job.Name, groups(job), l.memory.of(job.Status.Version), jobs.ChildrenOf[*corev1.Pod](seen.Children))
	return l
}

// step advances a job that has not finished.
func (l *look) step() {
	switch l.job.Status.State.Phase {
	case volcano.Aborting:
		l.deleteUnfinished()
		l.turnOnceQuiet(volcano.Aborted, "Aborted", "All pods are stopped; a Command ResumeJob starts the job again")
	case volcano.Aborted:
		l.deleteUnfinished()
	case volcano.Completing:
		l.deleteUnfinished()
		l.turnOnceQuiet(volcano.Completed, l.job.Status.State.Reason, l.job.Status.State.Message)
	case volcano.Terminating:
		l.deleteUnfinished()
		l.turnOnceQuiet(volcano.Terminated, l.job.Status.State.Reason, l.job.Status.State.Message)
	case volcano.Restarting:
		l.restart()
	default:
		if !l.seen.Admission.MayRun() {
			l.hold()
			return
		}
		if l.job.Status.State.Reason == admittedAnewReason {
			return // its Workload is being deleted
		}
		if !l.succeeded() && !l.react() && (l.failureWaits || !l.allEnded()) {
			l.run()
		}
	}
}

// hold deletes the unfinished pods of a job that may not run, and reports what the job waits for.
// Finished pods stay: they hold no resources and do not run again.
func (l *look) hold() {
	l.deleteUnfinished()
	reason, message := l.waitsFor()
	if l.job.Status.State.Phase != volcano.Pending {
		l.passInto(volcano.Pending, reason, message)
		return
	}
	l.job.Status.State.Reason, l.job.Status.State.Message = reason, message
}

// run advances a job that may run towards its spec.
func (l *look) run() {
	l.plan.DeletePods(l.roster.Outdated())
	if l.giveBack() {
		return
	}
	if l.readmit() {
		return
	}
	if l.seen.Admission.MayStart() {
		l.renewHosts()
		l.createPods()
		jobs.JoinGangs(l.seen, kind, l.least(), &l.plan)
	}
	reason, message := l.starts()
	phase := l.job.Status.State.Phase
	running := l.count("", replicas.Running, replicas.Succeeded, replicas.Failed) >= minAvailable(l.job) && totalOf(l.job) > 0
	switch {
	case phase != volcano.Running && running:
		l.passInto(volcano.Running, runningReason, runningMessage)
	case phase != volcano.Pending && phase != volcano.Running:
		l.passInto(volcano.Pending, reason, message)
	case phase == volcano.Pending:
		l.job.Status.State.Reason, l.job.Status.State.Message = reason, message
	case l.job.Status.State.Reason == noRoomReason:
		l.job.Status.State.Reason, l.job.Status.State.Message = runningReason, runningMessage
	}
	l.tellOfLateTask()
}

// Reasons and messages of jobs that are admitted, before and after enough of their pods run.
const (
	startingReason, startingMessage = "Starting", "Pods are being started"
	runningReason, runningMessage   = "Running", "As many pods run as must"
)

// starts returns the reason and message for a job of which too few pods run yet.
func (l *look) starts() (reason, message string) {
	if totalOf(l.job) == 0 {
		return volcano.NoPods, "No task has replicas, so there is nothing to start"
	}
	return startingReason, startingMessage
}

// restart waits until no outdated pod is left. A job that has used up its restarts has failed instead.
func (l *look) restart() {
	if l.job.Status.RetryCount >= maxRetry(l.job) {
		l.turn(volcano.Failed, "MaxRetry", l.restartedTooOften())
		return
	}
	l.plan.DeletePods(l.roster.Outdated())
	if !l.seen.Admission.MayRun() {
		l.deleteUnfinished()
	}
	if len(l.roster.Surplus) > 0 || !l.roster.All(func(r *replicas.Replica) bool { return r.Pod == nil || r.UID() != "" }) {
		return
	}
	l.passInto(volcano.Pending, "Restarted", l.job.Status.State.Message)
}

// count returns how many pods of the task, or of all tasks if it is "", are in one of the phases.
func (l *look) count(task string, phases ...replicas.Phase) (n int32) {
	for i := range l.roster.Replicas {
		if r := &l.roster.Replicas[i]; (task == "" || r.Group == task) && slices.Contains(phases, r.Phase) {
			n++
		}
	}
	return n
}

// deleteUnfinished deletes all pods that have not finished.
func (l *look) deleteUnfinished() { l.plan.DeletePods(l.roster.Pods(true)) }
