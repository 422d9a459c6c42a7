package trainingjob

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// lattice says whether the agent is added to the workers, and for which framework.
type lattice struct {
	injected  bool
	framework string
}

// latticeOf returns what the job asks for now.
func latticeOf(job *breezeml.TrainingJob) lattice {
	return lattice{job.Spec.InjectLattice, string(job.Spec.Framework)}
}

// mark records it in an annotation of the template, where it stays for as long as the template is admitted.
func (l lattice) mark(template *corev1.PodTemplateSpec) {
	delete(template.Annotations, muster.AgentFrameworkAnnotation) // a value set by the user is ignored
	if l.injected {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, muster.AgentFrameworkAnnotation, l.framework)
	}
}

// lattice returns the value for the current run. Either all of its workers have the agent or none has: otherwise,
// workers with an agent would wait in vain for workers without.
func (v *view) lattice() lattice {
	granted := v.seen.Admission.PodSets[worker].Template
	if granted == nil {
		return latticeOf(v.job)
	}
	framework, injected := granted.Annotations[muster.AgentFrameworkAnnotation]
	return lattice{injected, framework}
}

// withAgent returns the template of the job's worker with this index, with the agent added to its training container if
// the workers have one.
func (l lattice) withAgent(job *breezeml.TrainingJob, agent podspec.Agent, template corev1.PodTemplateSpec,
	index int32) (corev1.PodTemplateSpec, error) {
	if !l.injected {
		return template, nil
	}
	round := roundOf(job, index)
	round.Framework = l.framework
	if c := trainingContainer(&template.Spec); c != nil {
		round.Container = c.Name
	}
	return agent.Inject(template, round)
}

// roundOf returns in which rounds the worker takes part. The workers that run are enough for one, even if the job's
// minimum has been raised since.
func roundOf(job *breezeml.TrainingJob, index int32) podspec.Round {
	size := sizesOf(job)
	if now := job.Status.CurrentSize; now > 0 {
		size.least = min(size.least, now)
	}
	return podspec.Round{
		ID: string(job.UID), Min: size.least, Max: max(size.least, size.most), Index: index,
		MaxRestarts: job.Spec.RunPolicy.BackoffLimit,
	}
}

// roundSizes returns the writes that update, on existing pods, the annotation with the sizes that their rounds may
// have.
func (v *view) roundSizes() (writes []write.Write) {
	sizes := roundOf(v.job, 0).Sizes()
	for r := range pointers.To(v.roster.Replicas) {
		pod := r.Pod
		if pod == nil || !replicas.IsLive(pod) {
			continue
		}
		if before := pod.Annotations[muster.RendezvousSizeAnnotation]; before != "" && before != sizes {
			changed := pod.DeepCopy()
			changed.Annotations[muster.RendezvousSizeAnnotation] = sizes
			writes = append(writes, write.Change(pod, changed))
		}
	}
	return writes
}
