package trainingjob

import (
	corev1 "k8s.io/api/core/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// withAgent is the template of the worker with the index as its job wants it: with the
// agent round the command of the container that trains, or as it is.
func withAgent(job *breezeml.TrainingJob, agent podspec.Agent, template corev1.PodTemplateSpec, index int32) (corev1.PodTemplateSpec, error) {
	if !job.Spec.InjectLattice {
		return template, nil
	}
	round := roundOf(job, index)
	if c := trainer(&template.Spec); c != nil {
		round.Container = c.Name
	}
	return agent.Inject(template, round)
}

// roundOf is in which rounds the worker takes part. Workers that run are enough for one,
// whatever the job has come to say of its minimum since.
func roundOf(job *breezeml.TrainingJob, index int32) podspec.Round {
	size := sizesOf(job)
	if now := job.Status.CurrentSize; now > 0 {
		size.least = min(size.least, now)
	}
	return podspec.Round{
		ID: string(job.UID), Min: size.least, Max: max(size.least, size.most), Index: index,
		Framework: string(job.Spec.Framework), MaxRestarts: job.Spec.RunPolicy.BackoffLimit,
	}
}

// tellSizes has the pods that there are say which sizes their rounds may have now.
func (l *look) tellSizes() {
	sizes := roundOf(l.job, 0).Sizes()
	for i := range l.roster.Replicas {
		pod := l.roster.Replicas[i].Pod
		if pod == nil || replicas.HasEnded(pod) || replicas.IsGoing(pod) {
			continue
		}
		if said := pod.Annotations[muster.RendezvousSizeAnnotation]; said != "" && said != sizes {
			changed := pod.DeepCopy()
			changed.Annotations[muster.RendezvousSizeAnnotation] = sizes
			l.plan.Writes = append(l.plan.Writes, jobs.Change(pod, changed))
		}
	}
}
