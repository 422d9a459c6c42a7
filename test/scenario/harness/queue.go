package harness

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Queue creates a ClusterQueue with one flavor and this quota, both named after the namespace, and a LocalQueue of the
// given name that points to it. The edits are applied to the ClusterQueue before its creation.
func (w *World) Queue(local string, flavor kueue.ResourceFlavorSpec, quota corev1.ResourceList,
	edits ...func(*kueue.ClusterQueueSpec)) {
	w.Helper()
	group := kueue.ResourceGroup{Flavors: []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(w.Namespace)}}}
	for _, name := range slices.Sorted(maps.Keys(quota)) {
		group.CoveredResources = append(group.CoveredResources, name)
		group.Flavors[0].Resources = append(group.Flavors[0].Resources,
			kueue.ResourceQuota{Name: name, NominalQuota: quota[name]})
	}
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []kueue.ResourceGroup{group}}}
	for _, edit := range edits {
		edit(&queue.Spec)
	}
	w.Shared(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: flavor})
	w.Shared(queue)
	w.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: local, Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}})
}

// ChangeQueue edits the ClusterQueue of this name as Change does.
func (w *World) ChangeQueue(name string, edit func(*kueue.ClusterQueue)) {
	w.Helper()
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.Change(q, func() { edit(q) })
}

// isQueue reports whether the object is a queue, whose changes the operator observes.
func isQueue(o client.Object) bool {
	switch o.(type) {
	case *kueue.ClusterQueue, *kueue.LocalQueue:
		return true
	}
	return false
}

// untilObserved waits, if o is a queue, until the observed generation in its status is the current one. The operator
// writes it only for the spec by which it admits.
func (w *World) untilObserved(o client.Object) {
	w.Helper()
	const what = "has a status for its current generation"
	observed := func(now client.Object, conditions []metav1.Condition) bool {
		active := meta.FindStatusCondition(conditions, kueue.ClusterQueueActive)
		return now.GetGeneration() >= o.GetGeneration() && active != nil && active.ObservedGeneration == now.GetGeneration()
	}
	switch o.(type) {
	case *kueue.ClusterQueue:
		UntilOne(w, &kueue.ClusterQueueList{}, o.GetName(), what,
			func(q *kueue.ClusterQueue) bool { return observed(q, q.Status.Conditions) })
	case *kueue.LocalQueue:
		UntilOne(w, &kueue.LocalQueueList{}, o.GetName(), what,
			func(q *kueue.LocalQueue) bool { return observed(q, q.Status.Conditions) })
	}
}
