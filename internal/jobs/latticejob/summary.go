package latticejob

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// Summary returns what lists of jobs say of a LatticeJob, apart from the pods of its VCJob, which is nil if there is
// none.
func Summary(job *lattice.LatticeJob, vcjob *volcano.Job) jobs.Summary {
	s := jobs.Summary{Queue: cmp.Or(job.Labels[kueue.QueueLabel], job.Spec.Queue), StartedAt: job.Status.StartTime}
	for name := range job.Spec.Tasks {
		pods, template := outlineOf(&job.Spec, name)
		s.Ask(pods, &template)
	}
	outcome := &jobs.SummaryOutcome{At: ptr.Deref(job.Status.CompletionTime, metav1.Time{}), Message: job.Status.Message}
	if vcjob != nil {
		state := &vcjob.Status.State
		outcome.At, outcome.Message = state.LastTransitionTime, cmp.Or(state.Message, outcome.Message)
	}
	switch {
	case job.Status.Phase == lattice.Succeeded:
		s.Outcome = &jobs.SummaryOutcome{Succeeded: true, At: outcome.At}
	case job.Status.Phase == lattice.Failed, vcjob == nil && job.Status.Message == lattice.LostMessage:
		s.Outcome = outcome
	default:
		s.Blocked = job.Status.Message // such as that it was handed to Volcano
	}
	return s
}

// outlineOf returns how many pods a task has, and a template with what each requests, as far as that is known without
// compiling the job.
func outlineOf(spec *lattice.LatticeJobSpec, name string) (pods int32, template corev1.PodTemplateSpec) {
	defaults, task := ptr.Deref(spec.Defaults, lattice.JobTaskSpec{}), spec.Tasks[name]
	containers := task.Workload.Containers
	if len(containers) == 0 {
		containers = defaults.Workload.Containers
	}
	for _, c := range containers {
		container := corev1.Container{Resources: compile.ResourcesOf(c.Resources)}
		template.Spec.Containers = append(template.Spec.Containers, container)
	}
	return ptr.Deref(cmp.Or(task.Replicas, defaults.Replicas), 1), template
}
