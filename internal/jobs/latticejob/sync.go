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
func (l *planner) syncStatus() {
	state := &l.vcjob.Status.State
	switch {
	case state.Phase == volcano.Completed:
		l.end(lattice.Succeeded, lattice.SucceededMessage, jobs.Normal(succeededReason, lattice.SucceededMessage))
	case state.Phase == volcano.Failed, state.Phase == volcano.Terminated, state.Phase == volcano.Aborted,
		// Volcano never leaves this state if it may not restart the job.
		state.Phase == volcano.Restarting && l.vcjob.Spec.MaxRetry == 0:
		l.end(lattice.Failed, lattice.FailedMessage, jobs.Warning(failedReason, l.whyFailed()))
	case !l.settings.External && state.Phase == "":
		// No controller has observed the VCJob yet, or what it would say need not be written.
		if !l.resubmitIfChanged() {
			l.relabelIfChanged()
		}
	case !l.settings.External && state.Reason == volcano.WaitingForQuota:
		l.wait(waiting(state.Message))
	case !l.settings.External && slices.Contains([]string{volcano.QueueNotFound, volcano.NoPods, jobs.InvalidJob}, state.Reason):
		l.wait(state.Message)
	default:
		l.running()
	}
}

// whyFailed returns the VCJob's reason for its failure.
func (l *planner) whyFailed() string {
	state := &l.vcjob.Status.State
	message := fmt.Sprintf("%s: its VCJob is %s", lattice.FailedMessage, state.Phase)
	if state.Message != "" {
		message += ": " + state.Message
	}
	return message
}

// wait reports why the VCJob has no quota: not yet, or no longer.
func (l *planner) wait(message string) {
	if l.job.Status.Phase == lattice.Running {
		l.setStatus(lattice.Running, message+l.ignoredChange(), l.job.Status.ObservedGeneration, l.changeEvent())
		l.relabelIfChanged()
		return
	}
	if l.resubmitIfChanged() {
		return
	}
	l.setStatus(lattice.Pending, message, nil, nil)
	if l.vcjob.Annotations[gpusAnnotation] != "" {
		l.plan.DueBy(l.seen.Now.Add(gpuRecheckInterval))
	}
	if !l.recordsDomains() {
		l.relabel() // records the labels on the VCJob, so that their changes are observed
		return
	}
	l.relabelIfChanged()
}

// resubmitIfChanged replaces the VCJob if the spec, the topology domains of its pods, or the cluster's
// GPU resources have changed since it was compiled. This happens only until the job runs.
func (l *planner) resubmitIfChanged() bool {
	if l.job.Status.Phase == lattice.Running || l.compiled() == l.job.Generation && l.hasDomains() && !l.gpuRequestChanged() {
		return false
	}
	l.deleteVCJob(metav1.DeletePropagationBackground)
	return true
}

// hasDomains reports whether the VCJob was compiled with the job's topology domains. Other domain
// annotations on its templates come from an admission policy, which would add them again.
func (l *planner) hasDomains() bool {
	return l.vcjob.Annotations[domainsAnnotation] == domainsOf(l.job) || !l.recordsDomains() && templatesHaveDomains(l.vcjob, compile.Domains(l.job.Annotations))
}

// recordsDomains reports whether the VCJob records the domains that it was compiled with.
func (l *planner) recordsDomains() bool {
	_, recorded := l.vcjob.Annotations[domainsAnnotation]
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
func (l *planner) deleteVCJob(how metav1.DeletionPropagation) {
	l.plan.First = append(l.plan.First, l.removeFromGraph()...)
	l.plan.Writes = append(l.plan.Writes, jobs.Delete(l.vcjob, how))
}

// removeFromGraph removes from the service graph the tasks with which the VCJob was made. It must precede the
// deletion of the VCJob, which alone has their names.
func (l *planner) removeFromGraph() (out []jobs.Write) {
	if !l.seen.Facts.Served[compile.MeshMembers] {
		return nil
	}
	for i := range l.vcjob.Spec.Tasks {
		out = append(out, jobs.Remove(compile.MeshMember(l.job, l.vcjob.Spec.Tasks[i].Name)))
	}
	return out
}

// running reports that all objects of the job exist.
func (l *planner) running() {
	message := lattice.SubmittedMessage
	switch {
	case l.settings.External && l.seen.Admission.Grant == jobs.Unqueued && !isManagedQueue(l.job, l.seen.Facts.Queues):
		message += ". Its queue is not managed by Muster, so Muster's quota does not cover it"
	case l.settings.External && l.seen.Admission.Grant == jobs.Waiting:
		// Volcano ran it before its queue was Muster's.
		message += ". It waits for Muster's quota, which does not cover it yet"
	case l.settings.External:
		l.noteRefusedPods()
		if why := l.plan.Progress.Obstacle; why != "" {
			message += ". " + why
		}
	case l.vcjob.Status.State.Reason == muster.RefusedReason:
		message += ". " + l.vcjob.Status.State.Message
	}
	if l.job.Status.Phase != lattice.Running {
		l.setStatus(lattice.Running, message, ptr.To(l.compiled()), ptr.To(jobs.Normal(submittedReason, message)))
	}
	l.setStatus(lattice.Running, message+l.ignoredChange(), l.job.Status.ObservedGeneration, l.changeEvent())
	l.relabelIfChanged()
	l.restore()
}

// noteRefusedPods reports that the API server refuses pods that Volcano would create, as it says in events on the VCJob:
// the phase only says that too few of them run. Volcano counts none before it has created all.
func (l *planner) noteRefusedPods() {
	status := &l.vcjob.Status
	missing := -(status.Pending + status.Running + status.Succeeded + status.Failed + status.Terminating + status.Unknown)
	for i := range l.vcjob.Spec.Tasks {
		missing += l.vcjob.Spec.Tasks[i].Replicas
	}
	if missing > 0 {
		l.plan.DueBy(l.seen.NoteRefusals(&l.plan.Progress, l.vcjob.UID, missing))
	}
}

// isLost reports whether the VCJob of a running job was deleted by another party: an eviction is
// recorded in the status first. If Volcano was removed, the VCJob may exist without being served.
func (l *planner) isLost() bool {
	return l.vcjob == nil && l.job.Status.Phase == lattice.Running && !l.waitsForVolcano(l.seen.Facts)
}

// endLost ends a lost job, so that it gives up its quota. As this is final, the API server is asked first:
// a live read must confirm that the VCJob is gone, and the status write that the job was still running.
func (l *planner) endLost() {
	if !l.job.DeletionTimestamp.IsZero() {
		return
	}
	if l.job.Status.Message != lattice.LostMessage {
		l.plan.IfGone = &volcano.Job{ObjectMeta: metav1.ObjectMeta{Namespace: l.job.Namespace, Name: l.job.Name}}
		l.plan.StatusFirst = true
	}
	l.setStatus(lattice.Running, lattice.LostMessage, l.job.Status.ObservedGeneration, ptr.To(jobs.Warning(lostReason, lattice.LostMessage)))
	if l.seen.Admission.Grant != jobs.Unqueued {
		l.plan.Progress.Outcome = &jobs.Outcome{Message: lattice.LostMessage}
	}
}

// compiled returns the generation of the spec that the VCJob was compiled from.
func (l *planner) compiled() int64 {
	generation, err := strconv.ParseInt(l.vcjob.Annotations[generationAnnotation], 10, 64)
	if err != nil {
		return l.job.Generation // the annotation was removed
	}
	return generation
}

// ignoredChange returns the end of the message for a job whose spec was changed while it runs, "" if it
// was not.
func (l *planner) ignoredChange() string {
	if ptr.Deref(l.job.Status.ObservedGeneration, l.job.Generation) == l.job.Generation {
		return ""
	}
	return fmt.Sprintf(". The spec was changed after that, to generation %d, and the change is ignored: it runs with generation %d", l.job.Generation, *l.job.Status.ObservedGeneration)
}

// changeEvent returns the event for such a change; it is sent once, as the message is new then.
func (l *planner) changeEvent() *jobs.Event {
	if l.ignoredChange() == "" {
		return nil
	}
	return ptr.To(jobs.Warning(changeReason, "The spec of a LatticeJob cannot be changed while it runs: the change is ignored. Make another LatticeJob"))
}

// end ends the job for good, and removes its tasks from the service graph first, since a finished job
// is not reconciled again. The tasks are those of its VCJob: the spec may have changed since, and
// called services may be gone.
func (l *planner) end(phase lattice.JobPhase, message string, event jobs.Event) {
	before := l.job.DeepCopy()
	l.setStatus(phase, message, ptr.To(l.job.Generation), &event)
	if l.plan.Writes = append(l.plan.Writes, l.removeFromGraph()...); len(l.plan.Writes) > 0 {
		l.keepStatusOnError(before)
	}
}

// failCompile ends a job that cannot be compiled. An earlier spec may have been applied in part, so
// everything of the job is removed from the service graph.
func (l *planner) failCompile(message string) {
	before := l.job.DeepCopy()
	l.setStatus(lattice.Failed, message, ptr.To(l.job.Generation), ptr.To(jobs.Warning(compileFailedReason, message)))
	if l.seen.Facts.Served[compile.MeshMembers] {
		l.plan.Writes = append(l.plan.Writes, jobs.RemoveAll(compile.MeshMembersIn(l.job.Namespace)))
		l.keepStatusOnError(before)
	}
}

// keepStatusOnError keeps the job's previous status if its tasks cannot be removed from the graph,
// since a finished job is not reconciled again.
func (l *planner) keepStatusOnError(before *lattice.LatticeJob) {
	l.plan.StatusOnError = func(err error) (client.Object, jobs.Event) {
		before.Status.Phase = cmp.Or(before.Status.Phase, lattice.Pending)
		before.Status.Message = workload.Cut(fmt.Sprintf("Leaving the service graph failed (will retry): %v", err), messageBytes)
		return before, jobs.Warning(leaveFailedReason, before.Status.Message)
	}
}
