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

// serviceFailedReason is the reason of the event that a Service could not be created.
const serviceFailedReason = "FailedCreateService"

// createServices creates the Services of workers that have none.
func (l *planner) createServices() {
	there := map[string]bool{}
	for _, service := range jobs.ChildrenOf[*corev1.Service](l.seen.Children) {
		there[service.Name] = true
	}
	for i := range l.roster.Replicas {
		if r := &l.roster.Replicas[i]; !there[r.Name] {
			l.plan.Writes = append(l.plan.Writes, jobs.Create(l.newService(r)).OrWarn(serviceFailedReason))
		}
	}
}

// newService returns the Service that gives a worker's pod a DNS name, even before it is ready: workers look each other
// up while they start.
func (l *planner) newService(r *replicas.Replica) *corev1.Service {
	labels := l.labels(r.Index)
	selector := l.labels(r.Index)
	labels[muster.JobUIDLabel] = string(l.job.UID)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.Name, Namespace: l.job.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{l.owner()},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: selector, Ports: l.ports(), PublishNotReadyAddresses: true,
		},
	}
}

// ports returns the ports that the training container declares.
func (l *planner) ports() []corev1.ServicePort {
	c := trainingContainer(&l.job.Spec.ReplicaSpecs.Template.Spec)
	if c == nil {
		return nil
	}
	var out []corev1.ServicePort
	for _, p := range c.Ports {
		port := corev1.ServicePort{Name: p.Name, Port: p.ContainerPort, Protocol: cmp.Or(p.Protocol, corev1.ProtocolTCP), TargetPort: intstr.FromInt32(p.ContainerPort)}
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
func (l *planner) deleteServices(gone func(index int32) bool) {
	for _, service := range jobs.ChildrenOf[*corev1.Service](l.seen.Children) {
		if index, ok := replicas.IndexOf(l.job.Name, worker, service.Name); ok && gone(index) && service.DeletionTimestamp.IsZero() {
			l.plan.Writes = append(l.plan.Writes, jobs.Delete(service, metav1.DeletePropagationBackground))
		}
	}
}
