package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// SelectsNamespace reports whether the ClusterQueue accepts workloads of the namespace; false if either is nil.
func SelectsNamespace(q *kueue.ClusterQueue, ns *corev1.Namespace) bool {
	if q == nil || ns == nil || q.Spec.NamespaceSelector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(q.Spec.NamespaceSelector)
	return err == nil && selector.Matches(labels.Set(ns.Labels))
}

// Closed reports whether the ClusterQueue is stopped by a user: by its stopPolicy, or by the annotation, which has
// the effect of Hold.
func Closed(q *kueue.ClusterQueue) bool {
	return ptr.Deref(q.Spec.StopPolicy, kueue.None) != kueue.None || q.Annotations[muster.ClosedAnnotation] == "true"
}
