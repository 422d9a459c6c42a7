package genericjob

import (
	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/replicas"
)

// hasServices reports whether each replica has a Service.
func hasServices(job *tensorstack.GenericJob) bool {
	return job.Spec.Service != nil && len(job.Spec.Service.Ports) > 0
}

// newService returns the Service of a replica. It stays until the job is deleted: it costs nothing, and a replica keeps
// its name.
func (v *view) newService(r *replicas.Replica) *corev1.Service {
	return replicas.NewService(v.job, kind, r, tensorstack.ReplicaLabel, v.job.Spec.Service.Ports)
}
