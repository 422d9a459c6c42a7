package latticejob

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/workload"
)

// syncStatus sets the job's status from that of its VCJob.
func (p *planner) syncStatus() {
	state := &p.vcjob.Status.State
	switch {
	case state.Phase == volcano.Completed:
		p.end(lattice.Succeeded, lattice.SucceededMessage, jobs.Normal(succeededReason, lattice.SucceededMessage))
	case state.Phase == volcano.Failed, state.Phase == volcano.Terminated, state.Phase == volcano.Aborted,
		// Volcano never leaves this state if it may not restart the job.
		state.Phase == volcano.Restarting && p.vcjob.Spec.MaxRetry == 0:
		p.end(lattice.Failed, lattice.FailedMessage, jobs.Warning(failedReason, p.whyFailed()))
	case !p.settings.External && state.Phase == "":
		// No controller has observed the VCJob yet, or what it would say need not be written.
		if !p.resubmitIfChanged() {
			p.relabelIfChanged()
		}
	case !p.settings.External && state.Reason == volcano.WaitingForQuota:
		p.wait(waiting(state.Message))
	case !p.settings.External && slices.Contains([]string{volcano.QueueNotFound, volcano.NoPods, jobs.InvalidJob}, state.Reason):
		p.wait(state.Message)
	default:
		p.running()
	}
}

// whyFailed returns the VCJob's reason for its failure.
func (p *planner) whyFailed() string {
	state := &p.vcjob.Status.State
	message := fmt.Sprintf("%s: its VCJob is %s", lattice.FailedMessage, state.Phase)
	if state.Message != "" {
		message += ": " + state.Message
	}
	return message
}

// wait reports why the VCJob has no quota: not yet, or no longer.
func (p *planner) wait(message string) {
	if p.job.Status.Phase == lattice.Running {
		p.setStatus(lattice.Running, message+p.ignoredChange(), p.job.Status.ObservedGeneration, p.changeEvent())
		p.relabelIfChanged()
		return
	}
	if p.resubmitIfChanged() {
		return
	}
	p.setStatus(lattice.Pending, message, nil, nil)
	if p.vcjob.Annotations[gpusAnnotation] != "" {
		p.plan.DueBy(p.seen.Now.Add(gpuRecheckInterval))
	}
	if !p.recordsDomains() {
		p.relabel() // records the labels on the VCJob, so that their changes are observed
		return
	}
	p.relabelIfChanged()
}

// resubmitIfChanged replaces the VCJob if the spec, the topology domains of its pods, or the cluster's
// GPU resources have changed since it was compiled. This happens only until the job runs.
func (p *planner) resubmitIfChanged() bool {
	if p.job.Status.Phase == lattice.Running || p.compiled() == p.job.Generation && p.hasDomains() && !p.gpuRequestChanged() {
		return false
	}
	p.deleteVCJob(metav1.DeletePropagationBackground)
	return true
}

// hasDomains reports whether the VCJob was compiled with the job's topology domains. Other domain
// annotations on its templates come from an admission policy, which would add them again.
func (p *planner) hasDomains() bool {
	return p.vcjob.Annotations[domainsAnnotation] == domainsOf(p.job) || !p.recordsDomains() && templatesHaveDomains(p.vcjob, compile.Domains(p.job.Annotations))
}

// recordsDomains reports whether the VCJob records the domains that it was compiled with.
func (p *planner) recordsDomains() bool {
	_, recorded := p.vcjob.Annotations[domainsAnnotation]
	return recorded
}

// templatesHaveDomains reports whether a VCJob without that record has the domains in its templates: it was made
// by an operator of an earlier version.
func templatesHaveDomains(vcjob *volcano.Job, domains map[string]string) bool {
	for i := range vcjob.Spec.Tasks {
		for key, value := range domains {
			if vcjob.Spec.Tasks[i].Template.Annotations[key] != value {
				return false
			}
		}
	}
	return true
}

// deleteVCJob deletes the VCJob, after it has removed its tasks from the service graph.
func (p *planner) deleteVCJob(how metav1.DeletionPropagation) {
	p.plan.First = append(p.plan.First, p.removeFromGraph()...)
	p.plan.Writes = append(p.plan.Writes, jobs.Delete(p.vcjob, how))
}

// removeFromGraph removes from the service graph the tasks with which the VCJob was made. It must precede the
// deletion of the VCJob, which alone has their names.
func (p *planner) removeFromGraph() (out []jobs.Write) {
	if !p.seen.Facts.Served[compile.MeshMembers] {
		return nil
	}
	for i := range p.vcjob.Spec.Tasks {
		out = append(out, jobs.Remove(compile.MeshMember(p.job, p.vcjob.Spec.Tasks[i].Name)))
	}
	return out
}

// running reports that all objects of the job exist.
func (p *planner) running() {
	message := lattice.SubmittedMessage
	switch {
	case p.settings.External && p.seen.Admission.Grant == jobs.Unqueued && !isManagedQueue(p.job, p.seen.Facts.Queues):
		message += ". Its queue is not managed by Muster, so Muster's quota does not cover it"
	case p.settings.External && p.seen.Admission.Grant == jobs.Waiting:
		// Volcano ran it before its queue was Muster's.
		message += ". It waits for Muster's quota, which does not cover it yet"
	case p.settings.External:
		p.noteRefusedPods()
		if why := p.plan.Progress.Obstacle; why != "" {
			message += ". " + why
		}
	case p.vcjob.Status.State.Reason == muster.RefusedReason:
		message += ". " + p.vcjob.Status.State.Message
	}
	if p.job.Status.Phase != lattice.Running {
		p.setStatus(lattice.Running, message, ptr.To(p.compiled()), ptr.To(jobs.Normal(submittedReason, message)))
	}
	p.setStatus(lattice.Running, message+p.ignoredChange(), p.job.Status.ObservedGeneration, p.changeEvent())
	p.relabelIfChanged()
	p.restore()
}

// noteRefusedPods reports that the API server refuses pods that Volcano would create, as it says in events on the VCJob:
// the phase only says that too few of them run. Volcano counts none before it has created all.
func (p *planner) noteRefusedPods() {
	status := &p.vcjob.Status
	missing := -(status.Pending + status.Running + status.Succeeded + status.Failed + status.Terminating + status.Unknown)
	for i := range p.vcjob.Spec.Tasks {
		missing += p.vcjob.Spec.Tasks[i].Replicas
	}
	if missing > 0 {
		p.plan.DueBy(p.seen.NoteRefusals(&p.plan.Progress, p.vcjob.UID, missing))
	}
}

// isLost reports whether the VCJob of a running job was deleted by another party: an eviction is
// recorded in the status first. If Volcano was removed, the VCJob may exist without being served.
func (p *planner) isLost() bool {
	return p.vcjob == nil && p.job.Status.Phase == lattice.Running && !p.waitsForVolcano(p.seen.Facts)
}

// endLost ends a lost job, so that it gives up its quota. As this is final, the API server is asked first:
// a live read must confirm that the VCJob is gone, and the status write that the job was still running.
func (p *planner) endLost() {
	if !p.job.DeletionTimestamp.IsZero() {
		return
	}
	if p.job.Status.Message != lattice.LostMessage {
		p.plan.IfGone = &volcano.Job{ObjectMeta: metav1.ObjectMeta{Namespace: p.job.Namespace, Name: p.job.Name}}
		p.plan.StatusFirst = true
	}
	p.setStatus(lattice.Running, lattice.LostMessage, p.job.Status.ObservedGeneration, ptr.To(jobs.Warning(lostReason, lattice.LostMessage)))
	if p.seen.Admission.Grant != jobs.Unqueued {
		p.plan.Progress.Outcome = &jobs.Outcome{Message: lattice.LostMessage}
	}
}

// compiled returns the generation of the spec that the VCJob was compiled from.
func (p *planner) compiled() int64 {
	generation, err := strconv.ParseInt(p.vcjob.Annotations[generationAnnotation], 10, 64)
	if err != nil {
		return p.job.Generation // the annotation was removed
	}
	return generation
}

// ignoredChange returns the end of the message for a job whose spec was changed while it runs, "" if it
// was not.
func (p *planner) ignoredChange() string {
	if ptr.Deref(p.job.Status.ObservedGeneration, p.job.Generation) == p.job.Generation {
		return ""
	}
	return fmt.Sprintf(". The spec was changed after that, to generation %d, and the change is ignored: it runs with generation %d", p.job.Generation, *p.job.Status.ObservedGeneration)
}

// changeEvent returns the event for such a change; it is sent once, as the message is new then.
func (p *planner) changeEvent() *jobs.Event {
	if p.ignoredChange() == "" {
		return nil
	}
	return ptr.To(jobs.Warning(changeReason, "The spec of a LatticeJob cannot be changed while it runs: the change is ignored. Make another LatticeJob"))
}

// end ends the job for good, and removes its tasks from the service graph first, since a finished job
// is not reconciled again. The tasks are those of its VCJob: the spec may have changed since, and
// called services may be gone.
func (p *planner) end(phase lattice.JobPhase, message string, event jobs.Event) {
	before := p.job.DeepCopy()
	p.setStatus(phase, message, ptr.To(p.job.Generation), &event)
	if p.plan.Writes = append(p.plan.Writes, p.removeFromGraph()...); len(p.plan.Writes) > 0 {
		p.keepStatusOnError(before)
	}
}

// failCompile ends a job that cannot be compiled. An earlier spec may have been applied in part, so
// everything of the job is removed from the service graph.
func (p *planner) failCompile(message string) {
	before := p.job.DeepCopy()
	p.setStatus(lattice.Failed, message, ptr.To(p.job.Generation), ptr.To(jobs.Warning(compileFailedReason, message)))
	if p.seen.Facts.Served[compile.MeshMembers] {
		p.plan.Writes = append(p.plan.Writes, jobs.RemoveAll(compile.MeshMembersIn(p.job.Namespace)))
		p.keepStatusOnError(before)
	}
}

// keepStatusOnError keeps the job's previous status if its tasks cannot be removed from the graph,
// since a finished job is not reconciled again.
func (p *planner) keepStatusOnError(before *lattice.LatticeJob) {
	p.plan.StatusOnError = func(err error) (client.Object, jobs.Event) {
		before.Status.Phase = cmp.Or(before.Status.Phase, lattice.Pending)
		before.Status.Message = workload.Cut(fmt.Sprintf("Leaving the service graph failed (will retry): %v", err), messageBytes)
		return before, jobs.Warning(leaveFailedReason, before.Status.Message)
	}
}
