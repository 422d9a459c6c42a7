package vcjob

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// run advances a job that may run towards its spec.
func (p *planner) run() {
	p.plan.DeletePods(p.roster.Outdated())
	if p.deleteExcess() {
		return
	}
	if p.requeue() {
		return
	}
	if p.seen.Admission.MayStart() {
		p.objects.updateHosts()
		p.createPods()
		jobs.JoinGangs(p.seen, kind, p.sizes.least(), p.plan)
	}
	reason, message := p.startingState()
	phase, running := p.job.Status.State.Phase, p.enoughRun()
	switch {
	case phase != volcano.Running && running:
		p.status.setDerivedPhase(volcano.Running, runningReason, runningMessage)
	case phase != volcano.Pending && !running:
		p.status.setDerivedPhase(volcano.Pending, reason, message)
	case phase == volcano.Pending:
		p.job.Status.State.Reason, p.job.Status.State.Message = reason, message
	case reason == muster.RefusedReason: // enough pods run, but not all
		p.job.Status.State.Reason, p.job.Status.State.Message = reason, message
	case p.job.Status.State.Reason == taskWithoutQuotaReason, p.job.Status.State.Reason == muster.RefusedReason:
		p.job.Status.State.Reason, p.job.Status.State.Message = runningReason, runningMessage
	}
	p.status.noteTaskWithoutQuota()
}

// enoughRun reports whether as many pods run, or have ended, as the job's minimum. A job that runs goes on doing so
// while the state of pods is unknown: their nodes may only be out of reach.
func (v *view) enoughRun() bool {
	up := v.count("", replicas.Running, replicas.Succeeded, replicas.Failed)
	if v.job.Status.State.Phase == volcano.Running {
		up += v.count("", replicas.Unknown)
	}
	return totalOf(v.job) > 0 && up >= minAvailable(v.job)
}

// startingState returns the reason and message for an admitted job with too few running pods.
func (v *view) startingState() (reason, message string) {
	if totalOf(v.job) == 0 {
		return volcano.NoPods, "No task has replicas, so there is nothing to start"
	}
	if refused := v.seen.RefusedObjects.Message(); refused != "" {
		return muster.RefusedReason, refused
	}
	return startingReason, startingMessage
}

// awaitRestart waits until no outdated pod is left. A job that has used up its restarts has failed instead.
func (p *planner) awaitRestart() {
	if p.job.Status.RetryCount >= maxRetry(p.job) {
		p.status.setPhase(volcano.Failed, "MaxRetry", p.maxRetryMessage())
		return
	}
	p.plan.DeletePods(p.roster.Outdated())
	if !p.seen.Admission.MayRun() {
		p.deleteUnfinished()
	}
	if len(p.roster.Surplus) > 0 ||
		!p.roster.All(func(r *replicas.Replica) bool { return r.Pod == nil || r.UID() != "" }) {
		return
	}
	p.status.setDerivedPhase(volcano.Pending, "Restarted", p.job.Status.State.Message)
}

// createPods creates missing pods in order, as far as quota and the dependencies of their tasks allow. The rest are
// created when pods have finished or more were admitted.
func (p *planner) createPods() {
	left := map[string]int32{}
	for name, task := range p.tasks {
		if p.mayStart(task) {
			left[name] = p.sizes.limit(name) - p.roster.Alive(name)
		}
	}
	newPod := func(r *replicas.Replica, at podspec.Places) *corev1.Pod {
		if left[r.Group] <= 0 {
			return nil
		}
		left[r.Group]--
		return p.objects.newPod(r, at)
	}
	p.createsPods = p.plan.CreateReplicas(p.roster, p.seen.Admission, newPod)
	if p.createsPods {
		p.plan.AddFirst(p.objects.missing()...)
	}
}

// deleteExcess deletes the last pods of tasks that run more than were admitted, and reports whether there
// are any. They are created again when quota allows, which counts as no restart.
func (p *planner) deleteExcess() bool {
	gone := map[string]bool{}
	excess := map[string]int32{}
	for name := range p.tasks {
		excess[name] = p.roster.Alive(name) - p.sizes.limit(name)
	}
	for i := len(p.roster.Replicas) - 1; i >= 0; i-- {
		r := &p.roster.Replicas[i]
		if excess[r.Group] <= 0 || r.Pod == nil || replicas.IsFinished(r.Pod) {
			continue
		}
		excess[r.Group]--
		if r.UID() != "" {
			gone[r.Name] = true
		}
	}
	if len(gone) == 0 {
		return false
	}
	p.status.markOutdated(func(r *replicas.Replica) bool { return gone[r.Name] })
	p.plan.StatusFirst = true
	p.plan.DeletePods(p.roster.Outdated())
	return true
}
