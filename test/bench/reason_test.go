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

// reasonMost is the longest that a Workload may wait for the reason in its status while the API server is idle.
const reasonMost = time.Second

// TestReason measures the time from the creation of a Workload that does not fit its queue's quota until its status has
// the reason. The longest of 20 Workloads, created one after the other, counts.
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
		longest = max(longest, timeToReason(t, c, tooLarge(namespace, fmt.Sprintf("waits-%d", round), full)))
	}
	figure.Reach(t, "from a Workload that does not fit to its reason, at most", figure.Seconds(longest),
		figure.Seconds(reasonMost), longest <= reasonMost)
}

// tooLarge returns a Workload that asks for more than the quota of fullQueue.
func tooLarge(namespace, name string, queue kueue.LocalQueueName) *kueue.Workload {
	return &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: kueue.WorkloadSpec{
		QueueName: queue, PodSets: []kueue.PodSet{{Name: "main",
			Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer",
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}},
			}}}}}}
}

// TestReasonsOfABurst measures the same for many Workloads that eight clients create at once, each from its own
// creation. The creations are load as well, so the time that they take is printed with the waits.
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
		created, creating := createConcurrently(ctx, t, c, size,
			func(i int) *kueue.Workload { return tooLarge(namespace, fmt.Sprintf("burst-%d", i), full) })
		reported := map[string]time.Time{}
		for len(reported) < size {
			event, open := <-changes.ResultChan()
			if !open {
				t.Fatalf("%d of %d Workloads had a reason within two minutes", len(reported), size)
			}
			o, ok := event.Object.(*kueue.Workload)
			if !ok {
				continue
			}
			if _, known := reported[o.Name]; !known &&
				meta.IsStatusConditionFalse(o.Status.Conditions, kueue.WorkloadQuotaReserved) {
				reported[o.Name] = time.Now()
			}
		}
		creations := <-creating
		var waits []time.Duration
		for i := range created {
			waits = append(waits, reported[fmt.Sprintf("burst-%d", i)].Sub(created[i]))
		}
		slices.Sort(waits)
		what := fmt.Sprintf("%d Workloads that do not fit, at once: to the reason, ", size)
		figure.Note(what+"median", figure.Seconds(waits[size/2]))
		figure.Note(what+"longest", figure.Seconds(waits[size-1]))
		figure.Note("  to create them; until the last has its reason",
			fmt.Sprintf("%s, %s", figure.Seconds(creations), figure.Seconds(time.Since(began))))
	}
}

// createConcurrently starts to create size Workloads with eight clients at a time and returns at once. The channel
// receives the time that it took when all are created. Only then may the caller read created, which holds when the
// creation of each Workload began.
func createConcurrently(ctx context.Context, t *testing.T, c client.Client, size int,
	of func(i int) *kueue.Workload) (created []time.Time, took <-chan time.Duration) {
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

// fullQueue creates a ClusterQueue of one CPU, and returns the name of a LocalQueue of it.
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
	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(namespace)}}
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

// timeToReason creates the Workload and returns how long it takes until its status says why it is pending.
func timeToReason(t *testing.T, c client.WithWatch, workload *kueue.Workload) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes, err := c.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(workload.Namespace),
		client.MatchingFields{"metadata.name": workload.Name})
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
	t.Fatalf("the status of Workload %s had no reason within a minute", workload.Name)
	return 0
}
