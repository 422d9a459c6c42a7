// Package placement tests, on the embedded control plane with simulated nodes, that gangs are placed whole, stay whole
// when nodes fail or fill up, and how the queue default follows the nodes.
package placement

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

// Each test makes its nodes itself; the one of the cluster has those driven that are simulated.
func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{SimNodes: 1, SimGPUs: 1, Operator: true})
}

const (
	// patience bounds every wait, on a machine that is busy with other tests.
	patience = 2 * time.Minute

	gpu  = corev1.ResourceName("nvidia.com/gpu")
	pool = "example.com/pool"
	rack = "example.com/rack"
)

// simulated keeps pods of others away from the nodes of a test.
var simulated = corev1.Taint{Key: "muster.dev/simulated", Value: "true", Effect: corev1.TaintEffectNoSchedule}

// world is a namespace with nodes and queues of its own: what bears its name is the test's.
type world struct {
	*testing.T
	client    client.WithWatch
	cluster   *testcluster.Cluster
	namespace string
}

func newWorld(t *testing.T) *world {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, client: c, cluster: cluster, namespace: cluster.Namespace(t)}
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if err := w.client.Create(w.Context(), o); err != nil {
			w.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// shared creates objects of the whole cluster, which go with the test.
func (w *world) shared(objects ...client.Object) {
	w.Helper()
	w.create(objects...)
	w.Cleanup(func() {
		for _, o := range objects {
			if err := client.IgnoreNotFound(w.client.Delete(context.Background(), o)); err != nil {
				w.Errorf("deleting %T %s: %v", o, o.GetName(), err)
			}
		}
	})
}

// node makes a simulated node of the test's pool, ready to take pods that tolerate simulated ones.
func (w *world) node(name, inRack string, allocatable corev1.ResourceList, taints ...corev1.Taint) string {
	w.Helper()
	full := w.namespace + "-" + name
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: full, Labels: map[string]string{
			corev1.LabelHostname: full, corev1.LabelOSStable: "linux", pool: w.namespace, rack: inRack, simulated.Key: "true"}},
		Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{
			Capacity: allocatable, Allocatable: allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: full}},
		},
	}
	w.shared(node)
	// The API server has every new node tainted until somebody has seen that it is ready.
	w.change(node, func() { node.Spec.Taints = taints })
	return full
}

// offers is so many GPUs and all else that pods need.
func offers(gpus int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("110"),
		gpu: *resource.NewQuantity(gpus, resource.DecimalSI),
	}
}

// rackOf makes so many nodes of 8 GPUs in a rack.
func (w *world) rackOf(name string, nodes int) []string {
	w.Helper()
	var out []string
	for i := range nodes {
		out = append(out, w.node(fmt.Sprintf("%s-%d", name, i), name, offers(8), simulated))
	}
	return out
}

// queue makes the LocalQueue q over a ClusterQueue with more quota than the test has nodes, whose pods are placed on those
// nodes by rack.
func (w *world) queue() {
	w.Helper()
	w.shared(
		&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: rack}, {NodeLabel: corev1.LabelHostname}}}},
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: kueue.ResourceFlavorSpec{
			NodeLabels: map[string]string{pool: w.namespace}, TopologyName: ptr.To(kueue.TopologyReference(w.namespace)),
			Tolerations: []corev1.Toleration{{Key: simulated.Key, Operator: corev1.TolerationOpExists}},
		}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{gpu}, Flavors: []kueue.FlavorQuotas{{
				Name: kueue.ResourceFlavorReference(w.namespace), Resources: []kueue.ResourceQuota{{Name: gpu, NominalQuota: resource.MustParse("1000")}}}}}},
		}},
	)
	w.create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: w.namespace}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.namespace)}})
}

// gang is a JobSet of one Job with so many pods of so many GPUs, which run for a while.
func (w *world) gang(name, queue string, pods int32, gpus int64, runs time.Duration) *jobset.JobSet {
	amount := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace, Labels: map[string]string{kueue.QueueLabel: queue}},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{
			Name: "workers", Replicas: 1,
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Parallelism: ptr.To(pods), Completions: ptr.To(pods), CompletionMode: ptr.To(batchv1.IndexedCompletion), BackoffLimit: ptr.To[int32](100),
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": runs.String()}},
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

// podOn is a pod of nobody's that is on the node already and takes so many of its GPUs.
func (w *world) podOn(name, node string, gpus int64) *corev1.Pod {
	amount := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Annotations: map[string]string{"muster.dev/sim-duration": time.Hour.String()}},
		Spec: corev1.PodSpec{
			NodeName: node, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/other", Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount}}},
		},
	}
}

// change changes an object as it is now.
func (w *world) change(o client.Object, how func()) {
	w.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		how()
		return w.client.Update(w.Context(), o)
	})
	if err != nil {
		w.Fatalf("changing %T %s: %v", o, o.GetName(), err)
	}
}

// until waits, by watching the list, until the condition holds for its items in the test's namespace.
func until[L client.ObjectList](w *world, list L, what string, holds func(L) bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for {
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			w.Fatalf("waiting until %s: %v", what, err)
		}
		if holds(list) {
			return
		}
		events, err := w.client.Watch(ctx, list, client.InNamespace(w.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		if err != nil {
			w.Fatalf("waiting until %s: %v", what, err)
		}
		event, open := <-events.ResultChan()
		events.Stop()
		if ctx.Err() != nil {
			w.Fatalf("waited %s until %s: %s", patience, what, w.state())
		}
		if open && event.Type == watch.Error {
			continue // the list has the truth
		}
	}
}

// state is what a person would look at after a failure.
func (w *world) state() string {
	var out strings.Builder
	var workloads kueue.WorkloadList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&workloads, &pods} {
		if err := w.client.List(context.Background(), list, client.InNamespace(w.namespace)); err != nil {
			return err.Error()
		}
	}
	for i := range workloads.Items {
		wl := &workloads.Items[i]
		fmt.Fprintf(&out, "\nWorkload %s on %v", wl.Name, placesOf(wl))
		for _, c := range wl.Status.Conditions {
			fmt.Fprintf(&out, "\n  %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		fmt.Fprintf(&out, "\nPod %s on %q %s, selects %v, gates %v", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Spec.NodeSelector, pod.Spec.SchedulingGates)
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				fmt.Fprintf(&out, ", %s %s", c.Reason, c.Message)
			}
		}
	}
	return out.String()
}

// untilWorkload waits until the Workload of the job is so.
func (w *world) untilWorkload(job, what string, holds func(*kueue.Workload) bool) (found *kueue.Workload) {
	w.Helper()
	until(w, &kueue.WorkloadList{}, fmt.Sprintf("the Workload of %s %s", job, what), func(list *kueue.WorkloadList) bool {
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.Name == job && holds(&list.Items[i]) {
				found = &list.Items[i]
				return true
			}
		}
		return false
	})
	return found
}

// untilRunning waits until so many pods of the job run, and gives them by name.
func (w *world) untilRunning(job string, pods int) map[string]corev1.Pod {
	w.Helper()
	var running map[string]corev1.Pod
	until(w, &corev1.PodList{}, fmt.Sprintf("%d pods of %s run", pods, job), func(list *corev1.PodList) bool {
		running = map[string]corev1.Pod{}
		for _, pod := range list.Items {
			if (pod.Name == job || strings.HasPrefix(pod.Name, job+"-")) && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running[pod.Name] = pod
			}
		}
		return len(running) == pods
	})
	return running
}

// untilCompleted waits until the JobSet has.
func (w *world) untilCompleted(name string) {
	w.Helper()
	until(w, &jobset.JobSetList{}, name+" has completed", func(list *jobset.JobSetList) bool {
		for i := range list.Items {
			if list.Items[i].Name == name {
				return meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, string(jobset.JobSetCompleted))
			}
		}
		return false
	})
}

// placesOf are the pods of the Workload's one pod set by node.
func placesOf(wl *kueue.Workload) map[string]int32 {
	out := map[string]int32{}
	if wl.Status.Admission == nil {
		return out
	}
	for _, a := range wl.Status.Admission.PodSetAssignments {
		if a.TopologyAssignment == nil {
			continue
		}
		for _, domain := range a.TopologyAssignment.Domains {
			out[domain.Values[len(domain.Values)-1]] += domain.Count
		}
	}
	return out
}

// nodesOf counts pods by node.
func nodesOf(pods map[string]corev1.Pod) map[string]int32 {
	out := map[string]int32{}
	for _, pod := range pods {
		out[pod.Spec.NodeName]++
	}
	return out
}

func admitted(wl *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted)
}
