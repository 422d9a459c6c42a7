package trainingjob

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/replicas"
)

// newService returns the Service that gives a worker's pod a DNS name, even before it is ready: workers look each other
// up while they start.
func (v *view) newService(r *replicas.Replica) *corev1.Service {
	labels := v.labels(r.Index)
	selector := v.labels(r.Index)
	labels[muster.JobUIDLabel] = string(v.job.UID)
	return &corev1.Service{
		ObjectMeta: replicas.Owned(v.job, v.settings.kind(), r.Name, labels),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: selector, Ports: v.ports(), PublishNotReadyAddresses: true,
		},
	}
}

// ports returns the ports that the training container declares.
func (v *view) ports() []corev1.ServicePort {
	c := trainingContainer(&v.job.Spec.ReplicaSpecs.Template.Spec)
	if c == nil {
		return nil
	}
	var out []corev1.ServicePort
	for _, declared := range c.Ports {
		port := corev1.ServicePort{Name: declared.Name, Port: declared.ContainerPort,
			Protocol: cmp.Or(declared.Protocol, corev1.ProtocolTCP), TargetPort: intstr.FromInt32(declared.ContainerPort)}
		if port.Name == "" && len(c.Ports) > 1 {
			continue // a Service with several ports requires names
		}
		if !slices.ContainsFunc(out,
			func(o corev1.ServicePort) bool { return o.Port == port.Port && o.Protocol == port.Protocol }) {
			out = append(out, port)
		}
	}
	return out
}

// deleteServices returns the writes that delete the Services of workers that do not exist any more.
func (v *view) deleteServices(gone func(index int32) bool) (writes []write.Write) {
	for _, service := range jobs.ChildrenOf[*corev1.Service](v.seen.Children) {
		if index, ok := replicas.IndexOf(v.job.Name, worker, service.Name); ok && gone(index) &&
			service.DeletionTimestamp.IsZero() {
			writes = append(writes, write.Delete(service))
		}
	}
	return writes
}
