//go:build bench

package endtoend

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/bench/operator"
)

var (
	scale          = flag.Float64("scale", 1, "share of the nodes and jobs; the figures hold for 1 only")
	operatorBinary = flag.String("operator", "../../../../bin/muster-operator", "the operator to measure")
)

const (
	nodes       = 500
	gpusOfNode  = 8
	singles     = 4000
	gangPods    = 512
	factorMost  = 1.5
	writesMost  = 2.0
	creators    = 16
	patience    = 12 * time.Minute
	gpu         = corev1.ResourceName("nvidia.com/gpu")
	simulated   = "muster.dev/simulated"
	rackLabel   = "muster.dev/rack"
	blockLabel  = "muster.dev/block"
	queueOfAll  = "bench"
	longEnough  = "24h"
	bindSeconds = "muster_placement_bind_seconds"
)

func scaled(n int) int { return max(1, int(float64(n)**scale)) }

func TestMain(m *testing.M) {
	flag.Parse()
	testcluster.Main(m, testcluster.Options{SimNodes: scaled(nodes), SimGPUs: gpusOfNode})
}

// TestEndToEnd: single-GPU jobs that fill all nodes, and one gang, from the first creation until the last pod is bound by
// the real kube-scheduler. The floor is the same pods, created and bound with nothing to decide; beside it stands what
// Kubernetes' own Jobs cost without a queue.
func TestEndToEnd(t *testing.T) {
	cluster := testcluster.Get(t)
	b := &bench{T: t, cluster: cluster, client: watching(t, cluster)}

	b.play("warm", scaled(singles)/10, podsOf(scaled(singles)/10))
	floorPods := b.play("floor", scaled(singles), podsOf(scaled(singles)))
	floorJobs := b.play("jobs", scaled(singles), jobsOf(scaled(singles), ""))
	floorGang := b.play("floorgang", scaled(gangPods), podsOf(scaled(gangPods)))

	running := operator.Start(t, *operatorBinary, cluster)
	running.AwaitReady(t)
	b.makeQueue()

	before := cluster.Writes(t)
	single := b.play("single", scaled(singles), jobsOf(scaled(singles), queueOfAll))
	wrote := difference(b.wrote, before)
	count, sum := running.Observed(t, bindSeconds)
	singleBind := sum / float64(max(count, 1))

	before = cluster.Writes(t)
	gang := b.play("gang", scaled(gangPods), func(namespace string) []client.Object { return []client.Object{gangOf(namespace, scaled(gangPods))} })
	gangWrote := difference(b.wrote, before)
	gangCount, gangSum := running.Observed(t, bindSeconds)
	gangBind := (gangSum - sum) / float64(max(gangCount-count, 1))
	peak := running.Peak(t)
	running.End(syscall.SIGTERM)

	bound := time.Duration(factorMost * float64(floorPods))
	figure.Reach(t, fmt.Sprintf("%d single-GPU jobs until all are bound", scaled(singles)), figure.Seconds(single), figure.Seconds(bound), single <= bound)
	figure.Note("  the same pods with nothing to decide: the floor", figure.Seconds(floorPods))
	figure.Note("  the same Jobs without a queue", figure.Seconds(floorJobs))
	each := float64(ours(wrote)) / float64(scaled(singles))
	figure.Reach(t, "  writes of ours a job beyond its creates", fmt.Sprintf("%.3f", each), fmt.Sprint(writesMost), each <= writesMost)
	figure.Note("  mean time from admission to the last bind", fmt.Sprintf("%.2f s", singleBind))
	bound = time.Duration(factorMost * float64(floorGang))
	figure.Reach(t, fmt.Sprintf("one gang of %d pods until all are bound", scaled(gangPods)), figure.Seconds(gang), figure.Seconds(bound), gang <= bound)
	figure.Note("  the same pods with nothing to decide: the floor", figure.Seconds(floorGang))
	figure.Reach(t, "  writes of ours to its pods", fmt.Sprint(gangWrote["PATCH pods"]), "0", gangWrote["PATCH pods"] == 0)
	figure.Note("  all writes of ours for it", fmt.Sprint(ours(gangWrote)))
	figure.Note("  time from admission to the last bind", fmt.Sprintf("%.2f s", gangBind))
	figure.Note("peak memory of the operator", figure.MiB(peak))
}

// ours are the writes of the operator beyond creates: Kubernetes' own controllers put where it patches, and what binds
// pods and says how they fare is none of ours.
func ours(wrote map[string]int) int {
	sum := 0
	for _, what := range []string{"PATCH workloads", "PATCH workloads/status", "PATCH jobs", "PATCH jobs/status", "PATCH pods", "PATCH jobsets/status", "PATCH jobsets"} {
		sum += wrote[what]
	}
	return sum
}

// difference is what was written since.
func difference(after, before map[string]float64) map[string]int {
	out := map[string]int{}
	for what, n := range after {
		out[what] = int(n - before[what])
	}
	return out
}

type bench struct {
	*testing.T
	cluster *testcluster.Cluster
	client  client.WithWatch
	// wrote is what had been written when the last load was bound.
	wrote map[string]float64
}

func watching(t *testing.T, cluster *testcluster.Cluster) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// play creates the objects in a namespace of their own, waits until so many pods of it are bound, and removes all of it.
func (b *bench) play(what string, pods int, load func(namespace string) []client.Object) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	namespace := b.cluster.Namespace(b.T)
	if what == "single" || what == "gang" {
		create(b.T, b.client, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: queueOfAll}, Spec: kueue.LocalQueueSpec{ClusterQueue: queueOfAll}})
	}
	objects := load(namespace)
	began := time.Now()
	creating := b.createAll(ctx, objects)
	b.awaitBound(ctx, what, namespace, pods)
	wall := time.Since(began)
	b.wrote = b.cluster.Writes(b.T) // before the removal, which is none of it
	if err := creating(); err != nil {
		b.Fatal(err)
	}
	b.clear(ctx, namespace)
	return wall
}

// awaitBound returns when so many pods of the namespace are bound. A watch that the API server ends, as it does with one that
// falls behind, is begun again from a list.
func (b *bench) awaitBound(ctx context.Context, what, namespace string, pods int) {
	b.Helper()
	bound := map[string]bool{}
	for len(bound) < pods {
		var list corev1.PodList
		if err := b.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			b.Fatalf("%s: %d of %d pods were bound: %v", what, len(bound), pods, err)
		}
		for i := range list.Items {
			if list.Items[i].Spec.NodeName != "" {
				bound[list.Items[i].Name] = true
			}
		}
		events, err := b.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			b.Fatal(err)
		}
		for len(bound) < pods {
			event, open := <-events.ResultChan()
			if !open {
				break
			}
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
				bound[pod.Name] = true
			}
		}
		events.Stop()
	}
}

// createAll creates the objects side by side, and gives what waits for the end of it.
func (b *bench) createAll(ctx context.Context, objects []client.Object) (wait func() error) {
	var next atomic.Int64
	var workers sync.WaitGroup
	failed := make(chan error, creators)
	for range creators {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(objects) {
					return
				}
				if err := b.client.Create(ctx, objects[i]); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	return func() error {
		workers.Wait()
		select {
		case err := <-failed:
			return err
		default:
			return nil
		}
	}
}

// clear removes the load, and returns when the nodes are free of it.
func (b *bench) clear(ctx context.Context, namespace string) {
	b.Helper()
	for _, kind := range []client.Object{&jobset.JobSet{}, &batchv1.Job{}, &corev1.Pod{}} {
		err := b.client.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.PropagationPolicy(metav1.DeletePropagationBackground), client.GracePeriodSeconds(0))
		if err != nil {
			b.Fatal(err)
		}
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		var left corev1.PodList
		if err := b.client.List(ctx, &left, client.InNamespace(namespace), client.Limit(1)); err != nil {
			b.Fatal(err)
		}
		if len(left.Items) == 0 {
			return
		}
		select {
		case <-tick.C: // the end of deletions by others has no event of its own
		case <-ctx.Done():
			b.Fatalf("pods are left: %v", ctx.Err())
		}
	}
}

// makeQueue makes a queue with quota for all, whose pods are placed on the simulated nodes.
func (b *bench) makeQueue() {
	b.Helper()
	create(b.T, b.client, &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: queueOfAll}, Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{
		{NodeLabel: blockLabel}, {NodeLabel: rackLabel}, {NodeLabel: corev1.LabelHostname}}}})
	create(b.T, b.client, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: queueOfAll}, Spec: kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{simulated: "true"}, TopologyName: ptr.To(kueue.TopologyReference(queueOfAll)),
		Tolerations: []corev1.Toleration{{Key: simulated, Operator: corev1.TolerationOpExists}}}})
	create(b.T, b.client, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queueOfAll}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{gpu}, Flavors: []kueue.FlavorQuotas{{
			Name: queueOfAll, Resources: []kueue.ResourceQuota{{Name: gpu, NominalQuota: *resource.NewQuantity(nodes*gpusOfNode, resource.DecimalSI)}}}}}},
	}})
}

// create makes an object for the test.
func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// template is of pods with one GPU each that run for longer than the benchmark.
func template(free bool) corev1.PodTemplateSpec {
	one := corev1.ResourceList{gpu: resource.MustParse("1")}
	out := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": longEnough}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer", Resources: corev1.ResourceRequirements{Requests: one, Limits: one}}},
		},
	}
	if free { // of a queue, whose flavor would say so
		out.Spec.NodeSelector = map[string]string{simulated: "true"}
		out.Spec.Tolerations = []corev1.Toleration{{Key: simulated, Operator: corev1.TolerationOpExists}}
	}
	return out
}

func podsOf(n int) func(string) []client.Object {
	return func(namespace string) []client.Object {
		var out []client.Object
		for i := range n {
			t := template(true)
			out = append(out, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("pod-%d", i), Annotations: t.Annotations}, Spec: t.Spec})
		}
		return out
	}
}

// jobsOf are Jobs of one pod in the queue, "" for none.
func jobsOf(n int, queue string) func(string) []client.Object {
	return func(namespace string) []client.Object {
		var out []client.Object
		for i := range n {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("job-%d", i)}, Spec: batchv1.JobSpec{Template: template(queue == ""), BackoffLimit: ptr.To[int32](0)}}
			if queue != "" {
				job.Labels = map[string]string{kueue.QueueLabel: queue}
				job.Spec.Suspend = ptr.To(true)
			}
			out = append(out, job)
		}
		return out
	}
}

func gangOf(namespace string, pods int) client.Object {
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gang", Labels: map[string]string{kueue.QueueLabel: queueOfAll}},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{Name: "workers", Replicas: 1, Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			Parallelism: ptr.To(int32(pods)), Completions: ptr.To(int32(pods)), CompletionMode: ptr.To(batchv1.IndexedCompletion), BackoffLimit: ptr.To[int32](0), Template: template(false)}}}}},
	}
}
