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

// TestTheDefaultQueueIsPlacedOnNodes checks that jobs in the queue default get places on nodes, without a queue, flavor
// or topology of the test.
func TestTheDefaultQueueIsPlacedOnNodes(t *testing.T) {
	w := newSerialWorld(t)
	resource := corev1.ResourceName("example.com/" + w.Namespace)
	a := w.node("a", "r0", allocatableWith(resource, 4))
	w.node("b", "r0", allocatableWith(resource, 2))
	w.untilQuota(resource, "6")
	// The quota is 6, but no node has 5.
	w.Create(w.jobSetRequesting("large", resource, 5))
	w.UntilWorkloadOf("large", "waits for a node",
		func(wl *kueue.Workload) bool { return wl.Status.Admission == nil && len(wl.Status.Conditions) > 0 })
	w.Create(w.jobSetRequesting("fits", resource, 4))
	w.untilRunning("fits", 1)
	if on := harness.PlacesOf(w.UntilWorkloadOf("fits", "is admitted", admitted)); on[a] != 1 {
		t.Errorf("places = %v, want 1 on %s", on, a)
	}
}

// allocatableWith returns the resources of a node that has the amount of one extended resource, and no GPUs.
func allocatableWith(name corev1.ResourceName, amount int64) corev1.ResourceList {
	out := allocatable(0)
	out[name] = *resource.NewQuantity(amount, resource.DecimalSI)
	return out
}

// jobSetRequesting returns a JobSet in the queue default with one pod, which requests the amount of the resource and
// runs for an hour.
func (w *world) jobSetRequesting(name string, resourceName corev1.ResourceName, amount int64) client.Object {
	js := w.gang(name, "default", 1, 0, time.Hour)
	amounts := corev1.ResourceList{resourceName: *resource.NewQuantity(amount, resource.DecimalSI)}
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Resources =
		corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
	return js
}

// untilQuota waits until the ClusterQueue default has this quota of the resource.
func (w *world) untilQuota(name corev1.ResourceName, amount string) {
	w.Helper()
	harness.Until(w.World, &kueue.ClusterQueueList{}, "the queue default has a quota of "+amount+" "+string(name),
		func(list *kueue.ClusterQueueList) bool {
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
