package jobs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestLeftoverPodGroupsAreRelaxed: once jobs create no PodGroups any more, nothing updates existing ones, so their
// minimum is set to 1.
func TestLeftoverPodGroupsAreRelaxed(t *testing.T) {
	group := func(name string, least int32) *schedulingv1beta1.PodGroup {
		return Gang{Name: name, Pods: least}.podGroup(&corev1.Pod{}, schema.GroupVersionKind{})
	}
	another := group("of-no-gang", 3)
	another.Spec.SchedulingPolicy.Gang = nil
	writes := RelaxPodGroups([]client.Object{group("three", 3), group("one", 1), another, &corev1.Pod{}})
	if len(writes) != 1 || writes[0].Object().GetName() != "three" ||
		writes[0].Object().(*schedulingv1beta1.PodGroup).Spec.SchedulingPolicy.Gang.MinCount != 1 {
		t.Errorf("writes = %+v, want only the PodGroup three with a minimum of 1", writes)
	}
}

// TestTerminatingPodGroupIsUpdated: a deleted PodGroup exists as long as its pods do, and kube-scheduler still enforces
// it.
func TestTerminatingPodGroupIsUpdated(t *testing.T) {
	existing := Gang{Name: "g", Pods: 3}.podGroup(&corev1.Pod{}, schema.GroupVersionKind{})
	existing.DeletionTimestamp = ptr.To(metav1.Now())
	write, differs := Gang{Name: "g", Pods: 2, Waiting: true}.Ensure(&corev1.Pod{}, schema.GroupVersionKind{},
		[]client.Object{existing})
	if !differs || write.Object().(*schedulingv1beta1.PodGroup).Spec.SchedulingPolicy.Gang.MinCount != 2 {
		t.Errorf("differs: %v, write %+v; want a change to a minimum of 2", differs, write)
	}
}
