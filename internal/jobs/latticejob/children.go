package latticejob

import (
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
)

const (
	// generationAnnotation, on a VCJob, is the generation of the spec that it was compiled from.
	generationAnnotation = "lattice.dev/generation"
	// queueLabelsAnnotation, on a VCJob, holds the labels that were copied to it, as queueLabels formats them.
	queueLabelsAnnotation = "lattice.dev/queue-labels"
	// gateAnnotation, on a VCJob, holds the job's gate of admission as it was copied to it.
	gateAnnotation = "lattice.dev/admission-gated-by"
	// domainsAnnotation, on a VCJob, holds the topology domains that it was compiled with, as domainsOf formats them.
	domainsAnnotation = "lattice.dev/domains"
)

// view is what a plan is made from: the job, whose status is brought up to date, and its VCJob.
type view struct {
	controller
	seen jobs.Seen[*lattice.LatticeJob]
	// job is a copy whose status is updated.
	job *lattice.LatticeJob
	// vcjob is the job's VCJob; nil if there is none or it is being deleted.
	vcjob *volcano.Job
}

// hasStarted reports whether pods of the VCJob have run, or it has finished.
func hasStarted(vcjob *volcano.Job) bool {
	status := &vcjob.Status
	return status.State.Phase != "" && status.State.Phase != volcano.Pending ||
		status.Running+status.Succeeded+status.Failed+status.Terminating > 0
}

// deleteVCJob deletes the VCJob, after it has removed its tasks from the service graph.
func (p *planner) deleteVCJob(deletion func(client.Object) write.Write) {
	p.plan.AddFirst(p.removeFromGraph()...)
	p.plan.Add(deletion(p.vcjob))
}

// removeFromGraph removes from the service graph the tasks with which the VCJob was made. It must precede the
// deletion of the VCJob, which alone has their names.
func (v *view) removeFromGraph() (out []write.Write) {
	if !v.seen.Facts.Served[compile.MeshMembers] {
		return nil
	}
	for task := range pointers.To(v.vcjob.Spec.Tasks) {
		out = append(out, write.Remove(compile.MeshMember(v.job, task.Name)))
	}
	return out
}

// compiled returns the generation of the spec that the VCJob was compiled from.
func (v *view) compiled() int64 {
	generation, err := strconv.ParseInt(v.vcjob.Annotations[generationAnnotation], 10, 64)
	if err != nil {
		return v.job.Generation // the annotation was removed
	}
	return generation
}

// hasDomains reports whether the VCJob was compiled with the job's topology domains. Other domain
// annotations on its templates come from an admission policy, which would add them again.
func (v *view) hasDomains() bool {
	return v.vcjob.Annotations[domainsAnnotation] == domainsOf(v.job) ||
		!v.recordsDomains() && templatesHaveDomains(v.vcjob, compile.Domains(v.job.Annotations))
}

// recordsDomains reports whether the VCJob records the domains that it was compiled with.
func (v *view) recordsDomains() bool {
	_, recorded := v.vcjob.Annotations[domainsAnnotation]
	return recorded
}

// templatesHaveDomains reports whether a VCJob without that record has the domains in its templates: it was made
// by an operator of an earlier version.
func templatesHaveDomains(vcjob *volcano.Job, domains map[string]string) bool {
	for task := range pointers.To(vcjob.Spec.Tasks) {
		for key, value := range domains {
			if task.Template.Annotations[key] != value {
				return false
			}
		}
	}
	return true
}

// resubmitIfChanged replaces the VCJob if the spec, the topology domains of its pods, or the cluster's
// GPU resources have changed since it was compiled. This happens only until the job runs.
func (p *planner) resubmitIfChanged() bool {
	if p.job.Status.Phase == lattice.Running ||
		p.compiled() == p.job.Generation && p.hasDomains() && !p.gpuRequestChanged() {
		return false
	}
	p.deleteVCJob(write.Delete)
	return true
}

// kind is the kind LatticeJob.
var kind = lattice.GroupVersion.WithKind("LatticeJob")
