package placement

import (
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestTheDefaultQueueIsPlacedOnNodes: nobody made a queue, a flavor or a topology; pods have nodes when they are admitted.
func TestTheDefaultQueueIsPlacedOnNodes(t *testing.T) {
	w := newSerialWorld(t)
	resource := corev1.ResourceName("example.com/" + w.Namespace)
	a := w.node("a", "r0", allocatableWith(resource, 4))
	w.node("b", "r0", allocatableWith(resource, 2))
	w.untilQuota(resource, "6")
	// Six are there, but no node has five.
	w.Create(w.jobSetRequesting("large", resource, 5))
	w.UntilWorkloadOf("large", "waits for a node", func(wl *kueue.Workload) bool { return wl.Status.Admission == nil && len(wl.Status.Conditions) > 0 })
	w.Create(w.jobSetRequesting("fits", resource, 4))
	w.untilRunning("fits", 1)
	if on := harness.PlacesOf(w.UntilWorkloadOf("fits", "is admitted", admitted)); on[a] != 1 {
		t.Errorf("its place is on %v", on)
	}
}

// allocatableWith is what pods need and so much of one resource.
func allocatableWith(name corev1.ResourceName, amount int64) corev1.ResourceList {
	out := allocatable(0)
	out[name] = *resource.NewQuantity(amount, resource.DecimalSI)
	return out
}

// jobSetRequesting is a JobSet of one pod in the queue default that asks for so much of the resource, and runs for long.
func (w *world) jobSetRequesting(name string, resourceName corev1.ResourceName, amount int64) client.Object {
	js := w.gang(name, "default", 1, 0, time.Hour)
	amounts := corev1.ResourceList{resourceName: *resource.NewQuantity(amount, resource.DecimalSI)}
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
	return js
}

// untilQuota waits until the queue default gives so much of the resource.
func (w *world) untilQuota(name corev1.ResourceName, amount string) {
	w.Helper()
	harness.Until(w.World, &kueue.ClusterQueueList{}, "the queue default gives "+amount+" "+string(name), func(list *kueue.ClusterQueueList) bool {
		for i := range list.Items {
			if list.Items[i].Name != "default" {
				continue
			}
			for _, quota := range list.Items[i].Spec.ResourceGroups[0].Flavors[0].Resources {
				if quota.Name == name {
					return quota.NominalQuota.String() == amount
				}
			}
		}
		return false
	})
}
