package trainingjob

import (
	corev1 "k8s.io/api/core/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/podspec"
)

// withAgent is the template of the worker with the index as its job wants it: with the
// agent round the command of the container that trains, or as it is.
func withAgent(job *breezeml.TrainingJob, agent podspec.Agent, template corev1.PodTemplateSpec, index int32) (corev1.PodTemplateSpec, error) {
	if !job.Spec.InjectLattice {
		return template, nil
	}
	size := sizesOf(job)
	round := podspec.Round{
		ID: string(job.UID), Min: size.least, Max: size.most, Index: index,
		Framework: string(job.Spec.Framework), MaxRestarts: job.Spec.RunPolicy.BackoffLimit,
	}
	if c := trainer(&template.Spec); c != nil {
		round.Container = c.Name
	}
	return agent.Inject(template, round)
}
