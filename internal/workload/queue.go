package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Takes reports whether the ClusterQueue exists, and takes workloads of the namespace, as far as that is known.
func Takes(q *kueue.ClusterQueue, ns *corev1.Namespace) bool {
	if q == nil || ns == nil || q.Spec.NamespaceSelector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(q.Spec.NamespaceSelector)
	return err == nil && selector.Matches(labels.Set(ns.Labels))
}
