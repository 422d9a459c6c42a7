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

// racks puts the four simulated machines, of 8 GPUs each, into the racks r0 and r1, and gives the rack of each.
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

// placedQueue is the LocalQueue q whose pods are placed by rack; it has more quota than there are machines.
func (w *world) placedQueue() {
	w.Helper()
	w.Shared(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: rack}, {NodeLabel: corev1.LabelHostname}}}})
	flavor := onSimulated
	flavor.TopologyName = ptr.To(kueue.TopologyReference(w.Namespace))
	w.Queue("q", flavor, corev1.ResourceList{gpu: resource.MustParse("1000")})
}

// TestAGangIsPlacedAsAUnit: its types share a rack, as they ask; one that finds no rack has no pod at all; and a
// replica that is restarted goes back to its place.
func TestAGangIsPlacedAsAUnit(t *testing.T) {
	w := newWorld(t)
	rackOf := w.racks()
	if len(rackOf) != 4 {
		t.Fatalf("the simulated machines are %v", rackOf)
	}
	w.placedQueue()
	gang := func(name string) *tensorstack.GenericJob {
		return w.job(name, with("master", 1, 1), with("worker", 3, 1), onGPUs(4), inQueue(0),
			annotated(kueue.PodSetRequiredTopologyAnnotation, rack), annotated(kueue.PodSetGroupNameAnnotation, "all"))
	}
	w.Create(gang("a"))
	w.untilPhase("a", tensorstack.JobPhaseRunning)
	w.Create(gang("b"))
	w.untilPhase("b", tensorstack.JobPhaseRunning)
	first, second := w.untilAtTheirPlaces("a"), w.untilAtTheirPlaces("b")
	if a, b := racksOf(first, rackOf), racksOf(second, rackOf); len(a) != 1 || len(b) != 1 || maps.Equal(a, b) {
		t.Errorf("they are in the racks %v and %v", a, b)
	}
	w.Create(gang("c"))
	w.UntilWorkloadOf("c", "finds no place", func(wl *kueue.Workload) bool {
		c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		return c != nil && c.Reason == kueue.WorkloadTopologyPlacementFailed
	})
	if pods := w.nodesOf("c"); len(pods) > 0 {
		t.Errorf("of a gang without places there are pods: %v", pods)
	}
	w.EndReplica("a-worker-1", 0, 1)
	w.untilJob("a", "runs again", func(job *tensorstack.GenericJob) bool {
		return job.Status.Phase == tensorstack.JobPhaseRunning && job.Status.Aggregate.Running == 4 && job.Status.Tasks[1].RestartCount == 1
	})
	if again := w.untilAtTheirPlaces("a"); !maps.Equal(again, first) {
		t.Errorf("they were on %v and are on %v", first, again)
	}
	w.Delete(gang("a"))
	w.untilPhase("c", tensorstack.JobPhaseRunning)
	if third := w.untilAtTheirPlaces("c"); !maps.Equal(racksOf(third, rackOf), racksOf(first, rackOf)) {
		t.Errorf("a was on %v, c is on %v", first, third)
	}
}

// untilAtTheirPlaces waits until the pods of the job run where its Workload says, and gives the node of each.
func (w *world) untilAtTheirPlaces(job string) map[string]string {
	w.Helper()
	places := harness.PlacesOf(w.UntilWorkloadOf(job, "has places", func(wl *kueue.Workload) bool { return len(harness.PlacesOf(wl)) > 0 }))
	var nodes map[string]string
	harness.Until(w.World, &corev1.PodList{}, job+" is at its places", func(*corev1.PodList) bool {
		nodes = w.nodesOf(job)
		on := map[string]int32{}
		for _, node := range nodes {
			on[node]++
		}
		return maps.Equal(on, places)
	})
	return nodes
}

// nodesOf are the nodes of the job's pods that are not being deleted, by the names of the pods.
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

func racksOf(nodes, rackOf map[string]string) map[string]bool {
	out := map[string]bool{}
	for _, node := range nodes {
		out[rackOf[node]] = true
	}
	return out
}
