//go:build bench

package jobset

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

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

// scaled is the share of n that is played, at least one.
func scaled(n int) int { return max(1, int(float64(n)**scale)) }

const (
	// jobSetsAtOnce and writesAtOnce are those of the operator: as many JobSets side by side, and
	// writes of each.
	jobSetsAtOnce = 16
	writesAtOnce  = 50
	// manager says that the benchmark carries out the Jobs, foreign that it carries out JobSets.
	manager = "bench.muster.dev/harness"
	foreign = "bench.muster.dev/floor"
	limit   = 20 * time.Minute
)

// bench is a namespace of the cluster.
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
	b.awaitGone()
	b.namespace = cluster.Namespace(t)
	return b
}

// awaitGone waits until namespaces of earlier measurements are gone: removing what is in
// them costs writes and time.
func (b *bench) awaitGone() {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	for {
		var list corev1.NamespaceList
		if err := b.client.List(ctx, &list); err != nil {
			b.Fatal(err)
		}
		if !slices.ContainsFunc(list.Items, func(ns corev1.Namespace) bool { return !ns.DeletionTimestamp.IsZero() }) {
			return
		}
		events, err := b.client.Watch(ctx, &corev1.NamespaceList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			b.Fatal(err)
		}
		<-events.ResultChan()
		events.Stop()
		if ctx.Err() != nil {
			b.Fatalf("namespaces of earlier measurements are not gone: %v", ctx.Err())
		}
	}
}

// jobSet has one replicated job of so many Jobs, of one pod each.
func (b *bench) jobSet(name string, jobs int) *jobset.JobSet {
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{Name: "r", Replicas: int32(jobs), Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](0), ManagedBy: ptr.To(manager),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer"}}}},
		}}}}},
	}
}

// each does something for each of n, so many side by side, and fails with the first error.
func (b *bench) each(n, atOnce int, do func(ctx context.Context, i int) error) {
	b.Helper()
	var (
		group sync.WaitGroup
		next  = make(chan int)
		errs  = make(chan error, atOnce)
	)
	for range min(n, atOnce) {
		group.Go(func() {
			for i := range next {
				if err := do(b.Context(), i); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	close(errs)
	for err := range errs {
		b.Fatal(err)
	}
}

// queue makes a LocalQueue q that leads to a ClusterQueue without limits.
func (b *bench) queue() {
	b.Helper()
	for _, o := range []client.Object{
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}, Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "q"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(b.namespace)}},
	} {
		if err := b.client.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}

func name(i int) string { return fmt.Sprintf("js-%d", i) }
