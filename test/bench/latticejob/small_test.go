//go:build bench

package latticejob

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/bench/operator"
)

var (
	scale          = flag.Float64("scale", 0.1, "share of the jobs to run; the figures hold for 1 only")
	rounds         = flag.Int("rounds", 2, "number of rounds; their mean counts")
	operatorBinary = flag.String("operator", "../../../bin/muster-operator", "the operator to measure")
)

func TestMain(m *testing.M) {
	flag.Parse()
	testcluster.Main(m, testcluster.Options{})
}

const (
	smallJobs = 1000
	smallPods = 4
	// atOnce is how many jobs are created at a time, and how many the operator reconciles at a time.
	atOnce     = 16
	factorMost = 1.2
	queue      = "q"
	// noScheduler is a scheduler name that no scheduler has, so that pods are created and never bound.
	noScheduler = "none"
)

// TestSmallJobs measures 1,000 LatticeJobs of 4 pods in a queue, from the creation of the first until all pods exist.
// The floor creates the same objects as the same users, in order of their dependencies and with the same concurrency. A
// second floor also writes each admission, which no controller can do without.
//
// Each measurement is compared to the mean of the floors before and after it, because the control plane slows down with
// the number of objects that it has seen, and the speed of a shared machine changes within minutes. The very first
// floor is by far the cheapest and does not count.
func TestSmallJobs(t *testing.T) {
	b := newBench(t)
	jobs := max(1, int(smallJobs**scale))
	sample := b.sample()
	b.floor(sample, jobs, false)
	var measured, floorOfMeasured, admitted, floorOfAdmitted cost
	before := b.floor(sample, jobs, false)
	for range *rounds {
		measured = measured.plus(b.measure(jobs))
		between := b.floor(sample, jobs, false)
		floorOfMeasured = floorOfMeasured.plus(before.mean(between))
		admitted = admitted.plus(b.floor(sample, jobs, true))
		after := b.floor(sample, jobs, false)
		floorOfAdmitted = floorOfAdmitted.plus(between.mean(after))
		figure.Note("  floors of a round",
			fmt.Sprintf("%s, %s, %s", figure.Seconds(before.time), figure.Seconds(between.time), figure.Seconds(after.time)))
		before = after
	}
	measured, floor, admitted := measured.over(*rounds), floorOfMeasured.over(*rounds), admitted.over(*rounds)
	ratio := measured.time.Seconds() / floor.time.Seconds()
	admittedRatio := admitted.time.Seconds() / floorOfAdmitted.over(*rounds).time.Seconds()
	figure.Reach(t, fmt.Sprintf("%d LatticeJobs of %d pods, to the floor", jobs, smallPods), fmt.Sprintf("%.2f", ratio),
		fmt.Sprint(factorMost), ratio <= factorMost)
	figure.Note("  the jobs, and the floor", figure.Seconds(measured.time)+", "+figure.Seconds(floor.time))
	figure.Note("  CPU time of the control plane, and in the floor",
		figure.Seconds(measured.server)+", "+figure.Seconds(floor.server))
	figure.Note("  CPU time of the operator and the benchmark, and in the floor",
		figure.Seconds(measured.client)+", "+figure.Seconds(floor.client))
	figure.Note("  all CPU time, to the floor",
		fmt.Sprintf("%.2f", float64(measured.server+measured.client)/float64(floor.server+floor.client)))
	figure.Note("  the floor with the admissions, to the floor", fmt.Sprintf("%.2f", admittedRatio))
	figure.Note("  the jobs, to the floor with the admissions", fmt.Sprintf("%.2f", ratio/admittedRatio))
	figure.Note("  CPU time with the admissions: control plane, benchmark",
		figure.Seconds(admitted.server)+", "+figure.Seconds(admitted.client))
	for _, what := range slices.Sorted(maps.Keys(measured.counts)) {
		if each := measured.counts[what] / float64(jobs); each > 0.05 {
			figure.Note("  "+what+" a job", fmt.Sprintf("%.2f", each))
		}
	}
	figure.Note("  reads of the operator a job", fmt.Sprintf("%.2f", measured.reads/float64(jobs)))
}

// cost holds the measurements until all pods exist.
type cost struct {
	time time.Duration
	// server is the CPU time of the control plane, client that of the benchmark and, if there is one, the operator.
	server, client time.Duration
	// counts holds the numbers of all writes by verb and resource, and of the operator's reconciles by kind; reads is
	// the number of its other requests.
	counts map[string]float64
	reads  float64
}

// plus returns the sums of both.
func (c cost) plus(that cost) cost {
	sum := cost{time: c.time + that.time, server: c.server + that.server, client: c.client + that.client,
		reads: c.reads + that.reads, counts: map[string]float64{}}
	for _, counts := range []map[string]float64{c.counts, that.counts} {
		for what, n := range counts {
			sum.counts[what] += n
		}
	}
	return sum
}

// over returns the mean, given the sums of n costs.
func (c cost) over(n int) cost {
	by := time.Duration(n)
	mean := cost{time: c.time / by, server: c.server / by, client: c.client / by, reads: c.reads / float64(n),
		counts: map[string]float64{}}
	for what, sum := range c.counts {
		mean.counts[what] = sum / float64(n)
	}
	return mean
}

func (c cost) mean(that cost) cost { return c.plus(that).over(2) }

// bench is a control plane with a ClusterQueue that has quota for all jobs.
type bench struct {
	*testing.T
	cluster *testcluster.Cluster
	client  client.WithWatch
	// asOperator creates the operator's objects as its user, since the API server's checks depend on the user.
	asOperator client.Client
	server     figure.Process
}

func newBench(t *testing.T) *bench {
	cluster := testcluster.Get(t)
	b := &bench{T: t, cluster: cluster, server: figure.ProcessOf(t, filepath.Join(cluster.Dir, "pid"))}
	b.client = b.clientFor(cluster.Config)
	quota := kueue.FlavorQuotas{Name: queue}
	covered := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for _, name := range covered {
		quota.Resources = append(quota.Resources, kueue.ResourceQuota{Name: name, NominalQuota: resource.MustParse("1000Ti")})
	}
	b.create(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: queue}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queue},
			Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{},
				ResourceGroups: []kueue.ResourceGroup{{CoveredResources: covered, Flavors: []kueue.FlavorQuotas{quota}}}}})
	return b
}

func (b *bench) clientFor(config *rest.Config) client.WithWatch {
	b.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b *bench) create(objects ...client.Object) {
	b.Helper()
	for _, o := range objects {
		if err := b.client.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}

// makeNamespace creates a namespace with a LocalQueue.
func (b *bench) makeNamespace() string {
	b.Helper()
	namespace := b.cluster.Namespace(b.T)
	b.create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: queue, Namespace: namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: queue}})
	return namespace
}

func jobOf(namespace, name string) *lattice.LatticeJob {
	job := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: lattice.LatticeJobSpec{SchedulerName: noScheduler, Queue: queue}}
	requests := lattice.ResourceQuantity{CPU: ptr.To(resource.MustParse("100m")),
		Memory: ptr.To(resource.MustParse("64Mi"))}
	job.Spec.Tasks = map[string]lattice.JobTaskSpec{"worker": {Replicas: ptr.To[int32](smallPods),
		Workload: lattice.WorkloadSpec{
			Containers: map[string]lattice.ContainerSpec{"main": {SidecarContainer: lattice.SidecarContainer{
				Image: "example.com/worker:1", Command: []string{"/bin/work"},
				Resources: &lattice.ResourceRequirements{Requests: &requests, Limits: &requests}}}}}}}
	return job
}

// measure starts an operator, creates the jobs, and returns what it costs until all their pods exist.
func (b *bench) measure(jobs int) (c cost) {
	b.Helper()
	o := operator.Start(b.T, *operatorBinary, b.cluster)
	o.AwaitReady(b.T)
	namespace := b.makeNamespace()
	own := figure.Process(os.Getpid())
	b.awaitIdle()
	before, reads, server, client := b.counts(o), o.Reads(b.T), b.server.CPU(b.T), o.CPU(b.T)+own.CPU(b.T)
	c.time = b.timeToPods(namespace, jobs*smallPods, func() error {
		return concurrently(jobs,
			func(i int) error { return b.client.Create(b.Context(), jobOf(namespace, fmt.Sprintf("job-%d", i))) })
	})
	c.server, c.client, c.reads = b.server.CPU(b.T)-server, o.CPU(b.T)+own.CPU(b.T)-client, o.Reads(b.T)-reads
	c.counts = b.counts(o)
	for what := range c.counts {
		c.counts[what] -= before[what]
	}
	b.remove(namespace, &lattice.LatticeJob{})
	o.End(syscall.SIGTERM)
	return c
}

// counts returns the numbers of all writes so far, and of the operator's reconciles of jobs.
func (b *bench) counts(o *operator.Operator) map[string]float64 {
	b.Helper()
	out := b.cluster.Writes(b.T)
	for _, kind := range []string{"LatticeJob.lattice.dev", "Job.batch.volcano.sh"} {
		out["reconciles of "+kind] = o.Counted(b.T, "controller_runtime_reconcile_total", "controller="+kind)
	}
	return out
}

// timeToPods calls do and returns how long it takes until the namespace has the number of pods. The test fails if do
// does.
func (b *bench) timeToPods(namespace string, pods int, do func() error) time.Duration {
	b.Helper()
	began := time.Now()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := do()
		if err != nil {
			cancel() // stop waiting for pods that will not be created
		}
		ended <- err
	}()
	if err := b.untilPods(ctx, namespace, pods); err != nil {
		b.Fatal(errors.Join(<-ended, err))
	}
	took := time.Since(began)
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	return took
}

// untilPods waits until the namespace has had n pods, or the context ends.
func (b *bench) untilPods(ctx context.Context, namespace string, n int) error {
	b.Helper()
	seen := map[string]bool{}
	for len(seen) < n {
		watching, err := b.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
		if err != nil {
			return fmt.Errorf("%d of %d pods were created: %w", len(seen), n, err)
		}
		for event := range watching.ResultChan() { // a watch may end early; the next one starts with the existing pods
			if pod, ok := event.Object.(*corev1.Pod); ok {
				seen[pod.Name] = true
			}
			if len(seen) >= n {
				break
			}
		}
		watching.Stop()
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d pods were created: %w", len(seen), n, ctx.Err())
		}
	}
	return nil
}

// remove deletes all objects of the kind in the namespace, and waits until no VCJob, Workload or pod is left.
func (b *bench) remove(namespace string, kind client.Object) {
	b.Helper()
	if err := b.client.DeleteAllOf(b.Context(), kind, client.InNamespace(namespace),
		client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		b.Fatal(err)
	}
	for _, list := range []client.ObjectList{&volcano.JobList{}, &kueue.WorkloadList{}, &corev1.PodList{}} {
		b.untilNone(list, namespace)
	}
}

// untilNone waits until the namespace has no object of the list's kind.
func (b *bench) untilNone(list client.ObjectList, namespace string) {
	b.Helper()
	for {
		if err := b.client.List(b.Context(), list, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		n := lengthOf(list)
		if n == 0 {
			return
		}
		watching, err := b.client.Watch(b.Context(), list, client.InNamespace(namespace),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		if err != nil {
			b.Fatal(err)
		}
		for gone := 0; gone < n; {
			event, open := <-watching.ResultChan()
			if !open {
				break
			}
			if event.Type == watch.Deleted {
				gone++
			}
		}
		watching.Stop()
	}
}

// nameOf returns the name that an object of the sample has for another job.
func nameOf(o client.Object, job string) string {
	return strings.Replace(o.GetName(), sampleName, job, 1)
}
