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
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// follow has the job stand where its VCJob does.
func (l *look) follow() {
	state := &l.vcjob.Status.State
	switch {
	case state.Phase == volcano.Completed:
		l.end(lattice.Succeeded, lattice.SucceededMessage, jobs.Normal(succeededReason, lattice.SucceededMessage))
	case state.Phase == volcano.Failed, state.Phase == volcano.Terminated, state.Phase == volcano.Aborted,
		// Volcano never leaves that state where it may not restart anything.
		state.Phase == volcano.Restarting && l.vcjob.Spec.MaxRetry == 0:
		l.end(lattice.Failed, lattice.FailedMessage, jobs.Warning(failedReason, l.whyFailed()))
	case !l.settings.External && state.Phase == "":
		// Nobody has looked at it yet.
		l.resubmitIfChanged()
	case !l.settings.External && state.Phase == volcano.Pending && state.Reason == volcano.WaitingForQuota:
		l.wait(waiting(state.Message))
	case !l.settings.External && state.Phase == volcano.Pending && slices.Contains([]string{volcano.QueueNotFound, volcano.NoPods, jobs.InvalidJob}, state.Reason):
		l.wait(state.Message)
	default:
		l.running()
	}
}

// whyFailed is what the VCJob says of its end.
func (l *look) whyFailed() string {
	state := &l.vcjob.Status.State
	message := fmt.Sprintf("%s: its VCJob is %s", lattice.FailedMessage, state.Phase)
	if state.Message != "" {
		message += ": " + state.Message
	}
	return message
}

// wait tells why the VCJob has no quota: not yet, or no more.
func (l *look) wait(message string) {
	if l.job.Status.Phase == lattice.Running {
		l.say(lattice.Running, message+l.ignoredChange(), l.job.Status.ObservedGeneration, l.changeEvent())
		l.relabelIfChanged()
		return
	}
	if l.resubmitIfChanged() {
		return
	}
	l.say(lattice.Pending, message, nil, nil)
	if l.vcjob.Annotations[gpusAnnotation] != "" {
		l.plan.DueBy(l.seen.Now.Add(gpusLookedAtEvery))
	}
	if !l.saysDomains() {
		l.relabel() // it writes them down, so that it is heard when they change
		return
	}
	l.relabelIfChanged()
}

// resubmitIfChanged has the VCJob made anew if the spec has changed since, or where its pods are to
// be, or which GPUs there are, which may be until the job runs.
func (l *look) resubmitIfChanged() bool {
	if l.job.Status.Phase == lattice.Running || l.compiled() == l.job.Generation && l.hasDomains() && !l.asksForOtherGPUs() {
		return false
	}
	l.withdraw(metav1.DeletePropagationBackground)
	return true
}

// hasDomains reports whether the VCJob was made to ask for the domains that the job does. What else its templates say of domains a policy
// of the cluster has added, and would add again.
func (l *look) hasDomains() bool {
	return l.vcjob.Annotations[domainsAnnotation] == domainsOf(l.job) || !l.saysDomains() && madeBefore(l.vcjob, compile.Domains(l.job.Annotations))
}

// saysDomains reports whether the VCJob says which domains it was made to ask for, if any.
func (l *look) saysDomains() bool {
	_, says := l.vcjob.Annotations[domainsAnnotation]
	return says
}

// madeBefore reports whether the VCJob, which does not say what it was made to ask for, has the domains: then an operator has made it that
// did not write it down.
func madeBefore(vcjob *volcano.Job, domains map[string]string) bool {
	for i := range vcjob.Spec.Tasks {
		for key, value := range domains {
			if vcjob.Spec.Tasks[i].Template.Annotations[key] != value {
				return false
			}
		}
	}
	return true
}

// withdraw has the VCJob deleted, out of the service graph first.
func (l *look) withdraw(how metav1.DeletionPropagation) {
	l.plan.First = append(l.plan.First, l.leave()...)
	l.plan.Writes = append(l.plan.Writes, jobs.Delete(l.vcjob, how))
}

// leave takes the tasks that the VCJob was made with out of the service graph. Where the
// VCJob goes it comes first: nobody else knows their names.
func (l *look) leave() (out []jobs.Write) {
	if !l.seen.Facts.Served[compile.MeshMembers] {
		return nil
	}
	for i := range l.vcjob.Spec.Tasks {
		out = append(out, jobs.Remove(compile.MeshMember(l.job, l.vcjob.Spec.Tasks[i].Name)))
	}
	return out
}

// running tells that all that the job needs is there.
func (l *look) running() {
	message := lattice.SubmittedMessage
	if l.settings.External && l.seen.Admission.Grant == jobs.Unqueued && !covered(l.job, l.seen.Facts.Queues) {
		message += ". Its queue is not one of Muster's, whose quota does not cover it"
	}
	if l.job.Status.Phase != lattice.Running {
		l.say(lattice.Running, message, ptr.To(l.compiled()), ptr.To(jobs.Normal(submittedReason, message)))
	}
	l.say(lattice.Running, message+l.ignoredChange(), l.job.Status.ObservedGeneration, l.changeEvent())
	l.relabelIfChanged()
}

// isLost reports whether somebody has deleted the VCJob of a job that runs: who evicts one says so first. Where Volcano is gone it may
// only not be seen.
func (l *look) isLost() bool {
	return l.vcjob == nil && l.job.Status.Phase == lattice.Running && !l.waitsForVolcano(l.seen.Facts)
}

// lose tells that nothing of a lost job runs, nor will, so that it needs no quota. That is for good: the API server is asked before, of the
// VCJob by a read, and by the write of its status whether the job still says that it runs.
func (l *look) lose() {
	if !l.job.DeletionTimestamp.IsZero() {
		return
	}
	if l.job.Status.Message != lattice.LostMessage {
		l.plan.IfGone = &volcano.Job{ObjectMeta: metav1.ObjectMeta{Namespace: l.job.Namespace, Name: l.job.Name}}
		l.plan.StatusFirst = true
	}
	l.say(lattice.Running, lattice.LostMessage, l.job.Status.ObservedGeneration, ptr.To(jobs.Warning(lostReason, lattice.LostMessage)))
	if l.seen.Admission.Grant != jobs.Unqueued {
		l.plan.Progress.Outcome = &jobs.Outcome{Message: lattice.LostMessage}
	}
}

// compiled is the generation of the spec that the VCJob was made of.
func (l *look) compiled() int64 {
	generation, err := strconv.ParseInt(l.vcjob.Annotations[generationAnnotation], 10, 64)
	if err != nil {
		return l.job.Generation // somebody has taken it away
	}
	return generation
}

// ignoredChange ends the message of a job whose spec was changed while it runs.
func (l *look) ignoredChange() string {
	if ptr.Deref(l.job.Status.ObservedGeneration, l.job.Generation) == l.job.Generation {
		return ""
	}
	return fmt.Sprintf(". The spec was changed after that, to generation %d, and the change is ignored: it runs with generation %d", l.job.Generation, *l.job.Status.ObservedGeneration)
}

// changeEvent tells of such a change, once: the message is news then.
func (l *look) changeEvent() *jobs.Event {
	if l.ignoredChange() == "" {
		return nil
	}
	return ptr.To(jobs.Warning(changeReason, "The spec of a LatticeJob cannot be changed while it runs: the change is ignored. Make another LatticeJob"))
}

// end ends the job for good, and takes it out of the service graph first: nobody looks at
// a job that has ended. Its tasks are those that its VCJob was made with: the spec may have
// changed since, and whom it called may be gone.
func (l *look) end(phase lattice.JobPhase, message string, event jobs.Event) {
	before := l.job.DeepCopy()
	l.say(phase, message, ptr.To(l.job.Generation), &event)
	if l.plan.Writes = append(l.plan.Writes, l.leave()...); len(l.plan.Writes) > 0 {
		l.hasNotEndedOnError(before)
	}
}

// endUncompiled ends a job that cannot be compiled. An earlier spec of it may have been, and
// been applied in part, so whatever it has in the service graph goes.
func (l *look) endUncompiled(message string) {
	before := l.job.DeepCopy()
	l.say(lattice.Failed, message, ptr.To(l.job.Generation), ptr.To(jobs.Warning(compileFailedReason, message)))
	if l.seen.Facts.Served[compile.MeshMembers] {
		l.plan.Writes = append(l.plan.Writes, jobs.RemoveAll(compile.MeshMembersIn(l.job.Namespace)))
		l.hasNotEndedOnError(before)
	}
}

// hasNotEndedOnError has the job stand as it did before where it cannot leave the graph: nobody
// looks at a job that has ended.
func (l *look) hasNotEndedOnError(before *lattice.LatticeJob) {
	l.plan.StatusOnError = func(err error) (client.Object, jobs.Event) {
		before.Status.Phase = cmp.Or(before.Status.Phase, lattice.Pending)
		before.Status.Message = fmt.Sprintf("Leaving the service graph failed (will retry): %v", err)
		return before, jobs.Warning(leaveFailedReason, before.Status.Message)
	}
}
