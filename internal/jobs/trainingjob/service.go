package trainingjob

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// newService returns the Service that gives a worker's pod a DNS name, even before it is ready: workers look each other
// up while they start.
func (p *planner) newService(r *replicas.Replica) *corev1.Service {
	labels := p.labels(r.Index)
	selector := p.labels(r.Index)
	labels[muster.JobUIDLabel] = string(p.job.UID)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.Name, Namespace: p.job.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{p.owner()},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: selector, Ports: p.ports(), PublishNotReadyAddresses: true,
		},
	}
}

// ports returns the ports that the training container declares.
func (p *planner) ports() []corev1.ServicePort {
	c := trainingContainer(&p.job.Spec.ReplicaSpecs.Template.Spec)
	if c == nil {
		return nil
	}
	var out []corev1.ServicePort
	for _, declared := range c.Ports {
		port := corev1.ServicePort{Name: declared.Name, Port: declared.ContainerPort, Protocol: cmp.Or(declared.Protocol, corev1.ProtocolTCP), TargetPort: intstr.FromInt32(declared.ContainerPort)}
		if port.Name == "" && len(c.Ports) > 1 {
			continue // a Service with several ports requires names
		}
		if !slices.ContainsFunc(out, func(o corev1.ServicePort) bool { return o.Port == port.Port && o.Protocol == port.Protocol }) {
			out = append(out, port)
		}
	}
	return out
}

// deleteServices deletes the Services of workers that do not exist any more.
func (p *planner) deleteServices(gone func(index int32) bool) {
	for _, service := range jobs.ChildrenOf[*corev1.Service](p.seen.Children) {
		if index, ok := replicas.IndexOf(p.job.Name, worker, service.Name); ok && gone(index) && service.DeletionTimestamp.IsZero() {
			p.plan.Writes = append(p.plan.Writes, jobs.Delete(service, metav1.DeletePropagationBackground))
		}
	}
}
