package replicas

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/api/muster"
)

// NewPod returns the pod for the replica's current attempt, made from the template. Its containers are never restarted
// in place: a restart replaces the pod.
func NewPod(namespace string, owner metav1.OwnerReference, r *Replica, template corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            r.Name,
			Namespace:       namespace,
			Labels:          withEntry(template.Labels, muster.JobUIDLabel, string(owner.UID)),
			Annotations:     withEntry(template.Annotations, muster.RestartsAnnotation, strconv.Itoa(int(r.Restarts))),
			Finalizers:      template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: template.Spec,
	}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return pod
}

// NewService returns the Service of a replica, which selects the pod with the label. It publishes addresses before
// readiness, since peers look each other up while they start.
func NewService(namespace string, owner metav1.OwnerReference, r *Replica, label string,
	ports []corev1.ServicePort) *corev1.Service {
	own := map[string]string{label: r.Name}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:            r.Name,
			Namespace:       namespace,
			Labels:          withEntry(own, muster.JobUIDLabel, string(owner.UID)),
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.ServiceSpec{Selector: own, Ports: ports, PublishNotReadyAddresses: true},
	}
}

// withEntry returns a copy of the map with one more entry.
func withEntry(m map[string]string, key, value string) map[string]string {
	out := make(map[string]string, len(m)+1)
	maps.Copy(out, m)
	out[key] = value
	return out
}
