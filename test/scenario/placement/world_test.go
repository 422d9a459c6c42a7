// Package placement tests, on the embedded control plane with simulated nodes, that gangs are placed completely or not
// at all, that they are repaired when nodes fail or fill up, and that the queue default follows the nodes.
package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

// TestMain asks for one simulated node, because with none the cluster would simulate no pods. Each test creates its own
// nodes.
func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{SimNodes: 1, SimGPUs: 1, Operator: true, Config: config})
}

// config is the operator's configuration: elastic jobs grow as soon as there is capacity.
const config = `
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
elasticity: {growAfter: 0s, resizeCost: 0s}
`

const (
	gpu = corev1.ResourceName("nvidia.com/gpu")
	// pool and rack are node labels. The value of pool is the namespace of the node's test.
	pool = "example.com/pool"
	rack = "example.com/rack"
)

// simulated is the taint of nodes that only pods of the test's own queue may use. Its key and value are also the label
// of nodes whose pods are simulated.
var simulated = corev1.Taint{Key: "muster.dev/simulated", Value: "true", Effect: corev1.TaintEffectNoSchedule}

// world is a namespace with its own nodes and queues. Cluster-scoped objects of the test have the namespace's name, or
// a name that starts with it.
type world struct{ *harness.World }

// newWorld returns a world for a test that runs in parallel with others.
func newWorld(t *testing.T) *world {
	t.Parallel()
	return newSerialWorld(t)
}

// newSerialWorld returns a world for a test that would disturb others: it kills the operator, or changes objects that
// all tests share.
func newSerialWorld(t *testing.T) *world { return &world{harness.New(t)} }

// node creates a ready simulated node in the test's pool, and returns its full name.
func (w *world) node(name, rackName string, allocatable corev1.ResourceList, taints ...corev1.Taint) string {
	w.Helper()
	return w.Node(name, map[string]string{pool: w.Namespace, rack: rackName, simulated.Key: "true"},
		allocatable, taints...)
}

// allocatable returns the resources of a node with that many GPUs, and with enough CPU, memory and pods.
func allocatable(gpus int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods: resource.MustParse("110"),
		gpu:                 *resource.NewQuantity(gpus, resource.DecimalSI),
	}
}

// rackOf creates that many nodes with 8 GPUs each in a new rack, and returns their names.
func (w *world) rackOf(name string, nodes int) []string {
	w.Helper()
	var out []string
	for i := range nodes {
		out = append(out, w.node(fmt.Sprintf("%s-%d", name, i), name, allocatable(8), simulated))
	}
	return out
}

// queue creates the LocalQueue q. Its ClusterQueue has a quota of more GPUs than the test's nodes have, and a topology
// of racks and nodes.
func (w *world) queue() {
	w.Helper()
	w.Shared(
		&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
			Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: rack}, {NodeLabel: corev1.LabelHostname}}}},
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: kueue.ResourceFlavorSpec{
			NodeLabels: map[string]string{pool: w.Namespace}, TopologyName: ptr.To(kueue.TopologyReference(w.Namespace)),
			Tolerations: []corev1.Toleration{{Key: simulated.Key, Operator: corev1.TolerationOpExists}},
		}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{gpu}, Flavors: []kueue.FlavorQuotas{{
				Name:      kueue.ResourceFlavorReference(w.Namespace),
				Resources: []kueue.ResourceQuota{{Name: gpu, NominalQuota: resource.MustParse("1000")}}}}}},
		}},
	)
	w.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}})
}

// gang returns a JobSet in the queue with one Job. Each of its pods requests that many GPUs, and succeeds after the
// duration.
func (w *world) gang(name, queue string, pods int32, gpus int64, duration time.Duration) *jobset.JobSet {
	amount := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace, Labels: map[string]string{kueue.QueueLabel: queue}},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{
			Name: "workers", Replicas: 1,
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Parallelism: ptr.To(pods), Completions: ptr.To(pods), CompletionMode: ptr.To(batchv1.IndexedCompletion),
				BackoffLimit: ptr.To[int32](100),
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": duration.String()}},
					Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever,
						Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer", Command: []string{"train"},
							Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount}}},
					},
				},
			}},
		}}},
	}
}

// podOn returns a pod without an owner that requests that many GPUs and is bound to the node; if node is empty,
// kube-scheduler chooses one. It runs for an hour.
func (w *world) podOn(name, node string, gpus int64) *corev1.Pod {
	amount := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault,
			Annotations: map[string]string{"muster.dev/sim-duration": time.Hour.String()}},
		Spec: corev1.PodSpec{
			NodeName: node, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/other",
				Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount}}},
		},
	}
}

// untilRunning waits until exactly that many pods run whose name is the job's, alone or before a hyphen, and returns
// them by name. Terminating pods do not count.
func (w *world) untilRunning(job string, pods int) map[string]corev1.Pod {
	w.Helper()
	var running map[string]corev1.Pod
	harness.Until(w.World, &corev1.PodList{}, fmt.Sprintf("%d pods of %s are running", pods, job),
		func(list *corev1.PodList) bool {
			running = map[string]corev1.Pod{}
			for _, pod := range list.Items {
				if (pod.Name == job || strings.HasPrefix(pod.Name, job+"-")) && pod.Status.Phase == corev1.PodRunning &&
					pod.DeletionTimestamp == nil {
					running[pod.Name] = pod
				}
			}
			return len(running) == pods
		})
	return running
}

// untilCompleted waits until the JobSet has the condition Completed.
func (w *world) untilCompleted(name string) {
	w.Helper()
	harness.UntilOne(w.World, &jobset.JobSetList{}, name, "has completed", func(js *jobset.JobSet) bool {
		return meta.IsStatusConditionTrue(js.Status.Conditions, string(jobset.JobSetCompleted))
	})
}

// nodesOf returns the number of pods on each node.
func nodesOf(pods map[string]corev1.Pod) map[string]int32 {
	out := map[string]int32{}
	for _, pod := range pods {
		out[pod.Spec.NodeName]++
	}
	return out
}

// firstNode returns the first node by name of those to which counts belong.
func firstNode(counts map[string]int32) string { return slices.Sorted(maps.Keys(counts))[0] }

// pods returns the pods in the test's namespace.
func (w *world) pods() []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// admitted reports whether the Workload is admitted.
func admitted(wl *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted)
}
