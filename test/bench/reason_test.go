//go:build bench

package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
)

// reasonMost is how soon it stands in its status why a Workload waits, while the API
// server is quiet.
const reasonMost = time.Second

// TestReason: from the creation of a Workload for which there is no room to the reason in
// its status, the longest of some that come one after the other.
func TestReason(t *testing.T) {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := cluster.Namespace(t)
	full := fullQueue(t, c, namespace)
	var longest time.Duration
	const rounds = 20
	for round := range rounds {
		longest = max(longest, timeToReason(t, c, waiting(namespace, fmt.Sprintf("waits-%d", round), full)))
	}
	figure.Reach(t, "from a Workload without room to its reason, at most", figure.Seconds(longest), figure.Seconds(reasonMost), longest <= reasonMost)
}

// waiting is a Workload for which there is no room.
func waiting(namespace, name string, queue kueue.LocalQueueName) *kueue.Workload {
	return &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: kueue.WorkloadSpec{
		QueueName: queue, PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}},
		}}}}}}
}

// TestReasonsOfABurst: the same for many Workloads that are created side by side, each from its own creation. Their
// creations are load too; beside them stands how long they took.
func TestReasonsOfABurst(t *testing.T) {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{300, 1000} {
		namespace := cluster.Namespace(t)
		full := fullQueue(t, c, namespace)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		changes, err := c.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(namespace))
		if err != nil {
			t.Fatal(err)
		}
		defer changes.Stop()
		began := time.Now()
		created, creating := createSideBySide(ctx, t, c, size, func(i int) *kueue.Workload { return waiting(namespace, fmt.Sprintf("burst-%d", i), full) })
		told := map[string]time.Time{}
		for len(told) < size {
			event, open := <-changes.ResultChan()
			if !open {
				t.Fatalf("%d of %d had a reason within two minutes", len(told), size)
			}
			o, ok := event.Object.(*kueue.Workload)
			if _, known := told[o.GetName()]; ok && !known && meta.IsStatusConditionFalse(o.Status.Conditions, kueue.WorkloadQuotaReserved) {
				told[o.Name] = time.Now()
			}
		}
		creations := <-creating
		var waits []time.Duration
		for i := range created {
			waits = append(waits, told[fmt.Sprintf("burst-%d", i)].Sub(created[i]))
		}
		slices.Sort(waits)
		what := fmt.Sprintf("%d Workloads without room at once: to its reason, ", size)
		figure.Note(what+"the median", figure.Seconds(waits[size/2]))
		figure.Note(what+"the longest", figure.Seconds(waits[size-1]))
		figure.Note("  to create them, and until the last has its reason", fmt.Sprintf("%s, %s", figure.Seconds(creations), figure.Seconds(time.Since(began))))
	}
}

// createSideBySide creates so many Workloads by eight clients, and sends how long that took when it is done. When each was
// begun to be created is known then.
func createSideBySide(ctx context.Context, t *testing.T, c client.Client, size int, of func(i int) *kueue.Workload) (created []time.Time, took <-chan time.Duration) {
	t.Helper()
	created = make([]time.Time, size)
	done := make(chan time.Duration, 1)
	began, next := time.Now(), make(chan int)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for i := range next {
				created[i] = time.Now()
				if err := c.Create(ctx, of(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		for i := range size {
			next <- i
		}
		close(next)
		clients.Wait()
		done <- time.Since(began)
	}()
	return created, done
}

// fullQueue makes a queue of one CPU and gives the name of the LocalQueue that leads to it.
func fullQueue(t *testing.T, c client.Client, namespace string) kueue.LocalQueueName {
	t.Helper()
	owned := []client.Object{
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{corev1.ResourceCPU},
				Flavors: []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(namespace),
					Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("1")}}}},
			}},
		}},
	}
	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: namespace}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(namespace)}}
	for _, o := range append(owned, queue) {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, o := range owned {
			if err := c.Delete(context.Background(), o); err != nil {
				t.Error(err)
			}
		}
	})
	return kueue.LocalQueueName(queue.Name)
}

// timeToReason creates the Workload and waits until its status says why it waits.
func timeToReason(t *testing.T, c client.WithWatch, workload *kueue.Workload) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes, err := c.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(workload.Namespace), client.MatchingFields{"metadata.name": workload.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	began := time.Now()
	if err := c.Create(ctx, workload); err != nil {
		t.Fatal(err)
	}
	for event := range changes.ResultChan() {
		now, ok := event.Object.(*kueue.Workload)
		if ok && meta.IsStatusConditionFalse(now.Status.Conditions, kueue.WorkloadQuotaReserved) {
			return time.Since(began)
		}
	}
	t.Fatalf("%s had no reason within a minute", workload.Name)
	return 0
}
