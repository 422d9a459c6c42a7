package harness

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Queue makes a ClusterQueue with one flavor and this quota of it, both named as the namespace, and the LocalQueue of the
// given name that leads to it. What else is to be said of the ClusterQueue stands in it from the first.
func (w *World) Queue(local string, flavor kueue.ResourceFlavorSpec, quota corev1.ResourceList, edits ...func(*kueue.ClusterQueueSpec)) {
	w.Helper()
	group := kueue.ResourceGroup{Flavors: []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(w.Namespace)}}}
	for _, name := range slices.Sorted(maps.Keys(quota)) {
		group.CoveredResources = append(group.CoveredResources, name)
		group.Flavors[0].Resources = append(group.Flavors[0].Resources, kueue.ResourceQuota{Name: name, NominalQuota: quota[name]})
	}
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []kueue.ResourceGroup{group}}}
	for _, edit := range edits {
		edit(&queue.Spec)
	}
	w.Shared(
		queue,
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: flavor},
	)
	w.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: local, Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}})
}
