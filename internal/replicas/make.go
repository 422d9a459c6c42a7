package replicas

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/api/muster"
)

// NewPod is the pod of the replica's present attempt, made from the template. It ends
// with its containers: replicas are restarted as a whole.
func NewPod(namespace string, owner metav1.OwnerReference, r *Replica, template corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            r.Name,
			Namespace:       namespace,
			Labels:          with(template.Labels, muster.JobUIDLabel, string(owner.UID)),
			Annotations:     with(template.Annotations, muster.RestartsAnnotation, strconv.Itoa(int(r.Restarts))),
			Finalizers:      template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: template.Spec,
	}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return pod
}

// NewService is the Service of a replica: the pod that bears the label, from its first
// moment on, since peers look for each other while they start.
func NewService(namespace string, owner metav1.OwnerReference, r *Replica, label string, ports []corev1.ServicePort) *corev1.Service {
	own := map[string]string{label: r.Name}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:            r.Name,
			Namespace:       namespace,
			Labels:          with(own, muster.JobUIDLabel, string(owner.UID)),
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.ServiceSpec{Selector: own, Ports: ports, PublishNotReadyAddresses: true},
	}
}

// with is the map with one more entry.
func with(m map[string]string, key, value string) map[string]string {
	out := make(map[string]string, len(m)+1)
	maps.Copy(out, m)
	out[key] = value
	return out
}
