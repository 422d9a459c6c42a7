//go:build bench

package bench

import (
	"context"
	"fmt"
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
		workload := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("waits-%d", round), Namespace: namespace}, Spec: kueue.WorkloadSpec{
			QueueName: full, PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}},
			}}}}}}
		longest = max(longest, timeToReason(t, c, workload))
	}
	figure.Reach(t, "from a Workload without room to its reason, at most", figure.Seconds(longest), figure.Seconds(reasonMost), longest <= reasonMost)
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
