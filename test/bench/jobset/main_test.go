//go:build bench

package jobset

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

var scale = flag.Float64("scale", 1, "share of the JobSets and Jobs to play; the figures hold for 1 only")

func TestMain(m *testing.M) {
	flag.Parse()
	testcluster.Main(m, testcluster.Options{Operator: true})
}

// scaled returns the share of n that -scale selects, at least 1.
func scaled(n int) int { return max(1, int(float64(n)**scale)) }

const (
	// jobSetsAtOnce and writesAtOnce are the operator's concurrency: JobSets reconciled at a time, and writes of each.
	jobSetsAtOnce = 16
	writesAtOnce  = 50
	// jobManager is the managedBy of the Jobs, whose status the benchmark writes; floorManager is that of the floor's
	// JobSets, so that the operator ignores them.
	jobManager   = "bench.muster.dev/harness"
	floorManager = "bench.muster.dev/floor"
	patience     = 20 * time.Minute
)

// bench is a namespace of the cluster for one measurement.
type bench struct {
	*testing.T
	cluster   *testcluster.Cluster
	client    client.WithWatch
	namespace string
}

func newBench(t *testing.T) *bench {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, cluster: cluster, client: c}
	b.awaitNamespacesDeleted()
	b.namespace = cluster.Namespace(t)
	return b
}

// awaitNamespacesDeleted waits until the namespaces of earlier measurements are deleted, because removing their objects
// costs writes and time.
func (b *bench) awaitNamespacesDeleted() {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	for {
		var list corev1.NamespaceList
		if err := b.client.List(ctx, &list); err != nil {
			b.Fatal(err)
		}
		if !slices.ContainsFunc(list.Items, func(ns corev1.Namespace) bool { return !ns.DeletionTimestamp.IsZero() }) {
			return
		}
		events, err := b.client.Watch(ctx, &corev1.NamespaceList{},
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			b.Fatal(err)
		}
		<-events.ResultChan()
		events.Stop()
		if ctx.Err() != nil {
			b.Fatalf("some namespaces of earlier measurements are still being deleted: %v", ctx.Err())
		}
	}
}

// jobSet returns a JobSet of one replicated job with the number of Jobs, of one pod each.
func (b *bench) jobSet(name string, jobs int) *jobset.JobSet {
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{Name: "r",
			Replicas: int32(jobs), Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](0),
				ManagedBy: ptr.To(jobManager),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer"}}}},
			}}}}},
	}
}

// each calls do for 0 to n-1, atOnce at a time, and fails the test with the first error.
func (b *bench) each(n, atOnce int, do func(ctx context.Context, i int) error) {
	b.Helper()
	if err := concurrently(b.Context(), n, atOnce, do); err != nil {
		b.Fatal(err)
	}
}

// concurrently calls do for 0 to n-1, atOnce at a time, and returns the first error.
func concurrently(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// makeQueue creates a ClusterQueue without limits, and the LocalQueue "q" of it.
func (b *bench) makeQueue() {
	b.Helper()
	for _, o := range []client.Object{
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
			Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "q"},
			Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(b.namespace)}},
	} {
		if err := b.client.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}

func name(i int) string { return fmt.Sprintf("js-%d", i) }
