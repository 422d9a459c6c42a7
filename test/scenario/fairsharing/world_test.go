// Package fairsharing tests, on the embedded control plane, an operator whose configuration enables fair sharing: by
// weights within a cohort, and by past usage within a ClusterQueue.
package fairsharing

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

// config makes past usage decay slowly, so that tests do not depend on their duration, and has it sampled and written
// often, so that they do not wait long.
const config = `
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
fairSharing:
  preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]
admissionFairSharing:
  usageHalfLifeTime: 10m
  usageSamplingInterval: 1s
queueStatus:
  interval: 1s
`

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{Operator: true, Config: config}) }

// world is a namespace with ClusterQueues of CPUs in one flavor. The names of all of these begin with the namespace's.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world {
	w := &world{harness.New(t)}
	w.Shared(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}})
	return w
}

// queueOf returns a ClusterQueue with a nominal quota of that many CPUs.
func (w *world) queueOf(name string, cpus int64) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU},
			Flavors: []kueue.FlavorQuotas{{
				Name: kueue.ResourceFlavorReference(w.Namespace),
				Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU,
					NominalQuota: *resource.NewQuantity(cpus, resource.DecimalSI)}},
			}}}},
	}}
}

// sharing returns a ClusterQueue of the world's cohort, with the weight, which may reclaim quota from the others.
func (w *world) sharing(name string, cpus int64, weight string) *kueue.ClusterQueue {
	q := w.queueOf(name, cpus)
	q.Spec.Cohort = kueue.CohortReference(w.Namespace)
	q.Spec.FairSharing = &kueue.FairSharing{Weight: ptr.To(resource.MustParse(weight))}
	q.Spec.Preemption = &kueue.ClusterQueuePreemption{ReclaimWithinCohort: kueue.PreemptionPolicyAny}
	return q
}

// lender creates a ClusterQueue of the world's cohort without Workloads of its own, whose quota the others borrow.
func (w *world) lender(cpus int64) *kueue.ClusterQueue {
	w.Helper()
	q := w.queueOf("lender", cpus)
	q.Spec.Cohort = kueue.CohortReference(w.Namespace)
	w.Shared(q)
	return q
}

// local returns a LocalQueue of one of the world's ClusterQueues.
func (w *world) local(name, to string) *kueue.LocalQueue {
	return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace + "-" + to)}}
}

// workload returns a Workload of one pod that requests one CPU.
func (w *world) workload(name, queue string, priority int32) *kueue.Workload {
	o := w.Workload(name, queue)
	o.Spec.Priority = ptr.To(priority)
	o.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests =
		corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return o
}

// waits reports whether a Workload waits for quota that others use.
var waits = harness.Waits(kueue.WorkloadWaitingForQuota, "")

// untilRunning waits until each LocalQueue has that many admitted Workloads, and there are no others.
func (w *world) untilRunning(what string, want map[kueue.LocalQueueName]int) {
	w.Helper()
	harness.Until(w.World, &kueue.WorkloadList{}, what, func(list *kueue.WorkloadList) bool {
		running := map[kueue.LocalQueueName]int{}
		for i := range list.Items {
			if harness.Runs(&list.Items[i]) {
				running[list.Items[i].Spec.QueueName]++
			}
		}
		return maps.Equal(running, want)
	})
}

// finish reports that the Workload has succeeded.
func (w *world) finish(name string) {
	w.Helper()
	w.Report(name, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded)
}
