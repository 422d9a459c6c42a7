package genericjob

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

const rack = "example.com/rack"

// racks labels the four simulated nodes, of 8 GPUs each, as the racks r0 and r1, and returns the rack of each node.
func (w *world) racks() map[string]string {
	w.Helper()
	var nodes corev1.NodeList
	if err := w.Client.List(w.Context(), &nodes); err != nil {
		w.Fatal(err)
	}
	out := map[string]string{}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; node.Labels["muster.dev/simulated"] == "true" {
			out[node.Name] = fmt.Sprintf("r%d", len(out)/2)
			w.Patch(node, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, rack, out[node.Name]))
		}
	}
	return out
}

// topologyQueue creates the LocalQueue q, whose flavor has a topology of racks and nodes. Its quota is larger than the
// capacity of the nodes.
func (w *world) topologyQueue() {
	w.Helper()
	w.Shared(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: rack}, {NodeLabel: corev1.LabelHostname}}}})
	flavor := onSimulated
	flavor.TopologyName = ptr.To(kueue.TopologyReference(w.Namespace))
	w.Queue("q", flavor, corev1.ResourceList{gpu: resource.MustParse("1000")})
}

// TestAGangIsPlacedAsAUnit: the replica types of a gang are placed in one rack, as they require. A gang that fits into
// no rack has no pods, and a restarted replica returns to its node.
func TestAGangIsPlacedAsAUnit(t *testing.T) {
	w := newWorld(t)
	rackOf := w.racks()
	if len(rackOf) != 4 {
		t.Fatalf("racks of the simulated nodes = %v, want 4 nodes", rackOf)
	}
	w.topologyQueue()
	gang := func(name string) *tensorstack.GenericJob {
		return w.job(name, with("master", 1, 1), with("worker", 3, 1), onGPUs(4), inQueue(0),
			annotated(kueue.PodSetRequiredTopologyAnnotation, rack), annotated(kueue.PodSetGroupNameAnnotation, "all"))
	}
	w.Create(gang("a"))
	w.untilPhase("a", tensorstack.JobPhaseRunning)
	w.Create(gang("b"))
	w.untilPhase("b", tensorstack.JobPhaseRunning)
	first, second := w.untilPlaced("a"), w.untilPlaced("b")
	if a, b := racksOf(first, rackOf), racksOf(second, rackOf); len(a) != 1 || len(b) != 1 || maps.Equal(a, b) {
		t.Errorf("gang a is in racks %v and gang b in %v, want one rack each, not the same", a, b)
	}
	w.Create(gang("c"))
	w.UntilWorkloadOf("c", "cannot be placed", func(wl *kueue.Workload) bool {
		c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		return c != nil && c.Reason == kueue.WorkloadTopologyPlacementFailed
	})
	if pods := w.nodesOf("c"); len(pods) > 0 {
		t.Errorf("pods of gang c = %v, want none: it has no place", pods)
	}
	w.EndReplica("a-worker-1", 0, 1)
	w.untilJob("a", "runs again with one restart", func(job *tensorstack.GenericJob) bool {
		return job.Status.Phase == tensorstack.JobPhaseRunning && job.Status.Aggregate.Running == 4 &&
			job.Status.Tasks[1].RestartCount == 1
	})
	if again := w.untilPlaced("a"); !maps.Equal(again, first) {
		t.Errorf("pods of gang a are on %v after the restart, want %v", again, first)
	}
	w.Delete(gang("a"))
	w.untilPhase("c", tensorstack.JobPhaseRunning)
	if third := w.untilPlaced("c"); !maps.Equal(racksOf(third, rackOf), racksOf(first, rackOf)) {
		t.Errorf("pods of gang c are on %v, want the rack that gang a released: %v", third, first)
	}
}

// untilPlaced waits until the pods of the job are on the nodes assigned by its Workload, and returns the node of each.
func (w *world) untilPlaced(job string) map[string]string {
	w.Helper()
	places := harness.PlacesOf(w.UntilWorkloadOf(job, "has assigned nodes",
		func(wl *kueue.Workload) bool { return len(harness.PlacesOf(wl)) > 0 }))
	var nodes map[string]string
	harness.Until(w.World, &corev1.PodList{}, "the pods of "+job+" are on their assigned nodes",
		func(*corev1.PodList) bool {
			nodes = w.nodesOf(job)
			on := map[string]int32{}
			for _, node := range nodes {
				on[node]++
			}
			return maps.Equal(on, places)
		})
	return nodes
}

// nodesOf returns the nodes of the job's pods that are not terminating, by pod name.
func (w *world) nodesOf(job string) map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, pod := range w.podsOf(job) {
		if pod.DeletionTimestamp == nil {
			out[pod.Name] = pod.Spec.NodeName
		}
	}
	return out
}

// racksOf returns the racks of the nodes.
func racksOf(nodes, rackOf map[string]string) map[string]bool {
	out := map[string]bool{}
	for _, node := range nodes {
		out[rackOf[node]] = true
	}
	return out
}
