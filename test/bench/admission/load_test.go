//go:build bench

package admission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// class is a size of workload: each queue gets count of them, one every so often.
type class struct {
	name     string
	count    int
	cpu      int64
	run      time.Duration
	priority int32
	every    time.Duration
}

// classes is the load of the reference implementation's own benchmark.
var classes = []class{
	{name: "small", count: 350, cpu: 1, run: 200 * time.Millisecond, priority: 50, every: 100 * time.Millisecond},
	{name: "medium", count: 100, cpu: 5, run: 500 * time.Millisecond, priority: 100, every: 500 * time.Millisecond},
	{name: "large", count: 50, cpu: 20, run: time.Second, priority: 200, every: 1200 * time.Millisecond},
}

const (
	cohorts        = 5
	queuesInCohort = 6
	nominalCPU     = 20
	borrowingCPU   = 100
	flavorName     = "bench"
	// capacityMinimum is the least time in which the queues' quota can run the load.
	capacityMinimum = 66 * time.Second
)

// arrival is a workload of the load, to be created at a time after its start.
type arrival struct {
	at    time.Duration
	name  string
	queue string
	class *class
	body  []byte // encoded in advance, so that sending it costs little
}

// arrivals returns all workloads of the load in order of arrival.
func arrivals(t *testing.T, namespace string) []arrival {
	t.Helper()
	var all []arrival
	for _, queue := range queueNames() {
		for i := range classes {
			class := &classes[i]
			for n := range scaled(class.count) {
				a := arrival{
					at: time.Duration(n) * class.every, class: class, queue: queue,
					name: fmt.Sprintf("%s-%s-%d", queue, class.name, n),
				}
				a.body = encode(t, workload(namespace, a.name, queue, class.cpu, class.priority))
				all = append(all, a)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return all
}

// streams groups the load by queue and class. Each stream arrives at its own pace, independently of the others, as in
// the reference implementation's benchmark.
func streams(load []arrival) [][]arrival {
	type key struct {
		queue string
		class *class
	}
	var all [][]arrival
	at := map[key]int{}
	for _, a := range load {
		i, known := at[key{a.queue, a.class}]
		if !known {
			i = len(all)
			at[key{a.queue, a.class}], all = i, append(all, nil)
		}
		all[i] = append(all[i], a)
	}
	return all
}

// workload returns a Workload without an owner.
func workload(namespace, name, queue string, cpu int64, priority int32) *kueue.Workload {
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: kueue.WorkloadSpec{
			QueueName: kueue.LocalQueueName(queue),
			Priority:  ptr.To(priority),
			PodSets: []kueue.PodSet{{Name: kueue.DefaultPodSetName,
				Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{Name: "main", Image: "local", Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}}}},
				}}}},
		},
	}
	w.SetGroupVersionKind(kueue.GroupVersion.WithKind("Workload"))
	return w
}

func encode(t *testing.T, object any) []byte {
	t.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func queueNames() []string {
	var names []string
	for cohort := range cohorts {
		for queue := range queuesInCohort {
			names = append(names, fmt.Sprintf("c%d-q%d", cohort, queue))
		}
	}
	return names
}

// createQueues creates the ClusterQueues of the load, and a LocalQueue of each in the namespace.
func createQueues(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	createFlavor(t, c)
	for _, name := range queueNames() {
		queue := clusterQueue(name, nominalCPU)
		queue.Spec.Cohort = kueue.CohortReference(name[:2])
		queue.Spec.ResourceGroups[0].Flavors[0].Resources[0].BorrowingLimit = resource.NewQuantity(borrowingCPU,
			resource.DecimalSI)
		queue.Spec.Preemption = &kueue.ClusterQueuePreemption{
			ReclaimWithinCohort: kueue.PreemptionPolicyAny,
			WithinClusterQueue:  kueue.PreemptionPolicyLowerPriority,
		}
		create(t, c, queue)
		create(t, c, localQueue(namespace, name))
	}
}

func createFlavor(t *testing.T, c client.Client) {
	t.Helper()
	create(t, c, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavorName}})
}

func clusterQueue(name string, cpu int64) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{corev1.ResourceCPU},
				Flavors: []kueue.FlavorQuotas{{Name: flavorName, Resources: []kueue.ResourceQuota{
					{Name: corev1.ResourceCPU, NominalQuota: *resource.NewQuantity(cpu, resource.DecimalSI)}}}},
			}},
		},
	}
}

// localQueue returns a LocalQueue of the ClusterQueue of the same name.
func localQueue(namespace, name string) *kueue.LocalQueue {
	return &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)},
	}
}

// create creates an object and deletes it when the test ends, with its finalizers: the operator, which would remove
// them, has ended by then.
func create(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := cleanupContext(t)
		if err := c.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting %s: %v", object.GetName(), err)
		}
		none := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
		if err := c.Patch(ctx, object, none); client.IgnoreNotFound(err) != nil {
			t.Errorf("removing the finalizers of %s: %v", object.GetName(), err)
		}
	})
}
