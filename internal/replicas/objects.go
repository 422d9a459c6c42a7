package replicas

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/musterhq/muster/api/muster"
)

// NewPod returns the pod for the replica's current attempt, made from the template. Its containers are never restarted
// in place: a restart replaces the pod.
func NewPod(job metav1.Object, kind schema.GroupVersionKind, r *Replica,
	template corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: Owned(job, kind, r.Name, withEntry(template.Labels, muster.JobUIDLabel, string(job.GetUID()))),
		Spec:       template.Spec,
	}
	pod.Annotations = withEntry(template.Annotations, muster.RestartsAnnotation, strconv.Itoa(int(r.Restarts)))
	pod.Finalizers = template.Finalizers
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return pod
}

// NewService returns the Service of a replica, which selects the pod with the label. It publishes addresses before
// readiness, since peers look each other up while they start.
func NewService(job metav1.Object, kind schema.GroupVersionKind, r *Replica, label string,
	ports []corev1.ServicePort) *corev1.Service {
	own := map[string]string{label: r.Name}
	return &corev1.Service{
		ObjectMeta: Owned(job, kind, r.Name, withEntry(own, muster.JobUIDLabel, string(job.GetUID()))),
		Spec:       corev1.ServiceSpec{Selector: own, Ports: ports, PublishNotReadyAddresses: true},
	}
}

// Owned returns the metadata of an object that the job controls.
func Owned(job metav1.Object, kind schema.GroupVersionKind, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: job.GetNamespace(), Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, kind)}}
}

// withEntry returns a copy of the map with one more entry.
func withEntry(m map[string]string, key, value string) map[string]string {
	out := make(map[string]string, len(m)+1)
	maps.Copy(out, m)
	out[key] = value
	return out
}
