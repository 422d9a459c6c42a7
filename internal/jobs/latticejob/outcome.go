package latticejob

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// hasOutcome reports whether the job has ended.
func hasOutcome(job *lattice.LatticeJob) bool {
	return job.Status.Phase == lattice.Succeeded || job.Status.Phase == lattice.Failed
}

// setOutcome ends the job for good, and removes its tasks from the service graph first, since a finished job is not
// reconciled again. The tasks are the tasks of its VCJob: the spec may have changed since, and called services may be
// gone.
func (rep *reporter) setOutcome(phase lattice.JobPhase, message string, event write.Event) {
	before := rep.job.DeepCopy()
	rep.setStatus(phase, message, ptr.To(rep.job.Generation), event)
	rep.plan.Add(rep.removeFromGraph()...)
	if len(rep.plan.Writes) > 0 {
		rep.keepStatusOnError(before)
	}
}

// whyFailed returns the VCJob's reason for its failure.
func (v *view) whyFailed() string {
	state := &v.vcjob.Status.State
	message := fmt.Sprintf("%s: its VCJob is %s", lattice.FailedMessage, state.Phase)
	if state.Message != "" {
		message += ": " + state.Message
	}
	return message
}

// failCompile ends a job that cannot be compiled. An earlier spec may have been applied in part, so
// everything of the job is removed from the service graph.
func (rep *reporter) failCompile(message string) {
	before := rep.job.DeepCopy()
	rep.setStatus(lattice.Failed, message, ptr.To(rep.job.Generation), write.Warning(compileFailedReason, message))
	if rep.seen.Facts.Served[compile.MeshMembers] {
		rep.plan.Add(write.RemoveAll(compile.MeshMembersIn(rep.job.Namespace)))
		rep.keepStatusOnError(before)
	}
}

// keepStatusOnError keeps the job's previous status if its tasks cannot be removed from the graph,
// since a finished job is not reconciled again.
func (rep *reporter) keepStatusOnError(before *lattice.LatticeJob) {
	rep.plan.StatusOnError = func(err error) (client.Object, write.Event) {
		before.Status.Phase = cmp.Or(before.Status.Phase, lattice.Pending)
		before.Status.Message = workload.Cut(fmt.Sprintf("Leaving the service graph failed (will retry): %v",
			err), messageBytes)
		return before, write.Warning(leaveFailedReason, before.Status.Message)
	}
}

// isLost reports whether the VCJob of a running job was deleted by another party: an eviction is
// recorded in the status first. If Volcano was removed, the VCJob may exist without being served.
func (v *view) isLost() bool {
	return v.vcjob == nil && v.job.Status.Phase == lattice.Running && !v.waitsForVolcano(v.seen.Facts)
}

// failLost ends a lost job, so that it gives up its quota. As this is final, the API server is asked first:
// a live read must confirm that the VCJob is gone, and the status write that the job was still running.
func (rep *reporter) failLost() {
	if !rep.job.DeletionTimestamp.IsZero() {
		return
	}
	if rep.job.Status.Message != lattice.LostMessage {
		rep.plan.IfGone = &volcano.Job{ObjectMeta: metav1.ObjectMeta{Namespace: rep.job.Namespace, Name: rep.job.Name}}
		rep.plan.StatusFirst = true
	}
	rep.setStatus(lattice.Running, lattice.LostMessage, rep.job.Status.ObservedGeneration,
		write.Warning(lostReason, lattice.LostMessage))
	if rep.seen.Admission.Grant != jobs.Unqueued {
		rep.plan.Progress.Outcome = &jobs.Outcome{Message: lattice.LostMessage}
	}
}
