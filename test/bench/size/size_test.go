//go:build bench

package size

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/bench/operator"
)

const (
	nodes       = 200
	queues      = 100
	inQueue     = 150 // Workloads, of which the first half hold all quota
	podsOfQueue = 200 // of those
	flavor      = "bench"
	creators    = 16
	memoryMost  = 300_000_000
	idleCPUMost = 0.05
	decidesMost = 5 * time.Second
	patience    = 5 * time.Minute

	// quiet is for how long nobody must have written anything: reasons are told in the background, at most 300 a second. idle is a
	// minute, in which quotas are audited too.
	quiet = 5 * time.Second
	idle  = 60 * time.Second
)

// requests are those of each pod. Of pods alone there is not enough for all.
var requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")}

// bench is a cluster of that size.
type bench struct {
	*testing.T
	cluster *testcluster.Cluster
	client  client.WithWatch
	// operator may write what only the operator may.
	operator  client.WithWatch
	namespace string
	queues    int
	// ended is how many Workloads of each queue have ended.
	ended int
}

// TestAtSize: half of the Workloads hold all quota, with the pods of each on simulated nodes; the others wait. When one of each
// queue ends, the next is admitted.
func TestAtSize(t *testing.T) {
	cluster := testcluster.Get(t)
	b := &bench{T: t, cluster: cluster, client: watching(t, cluster, false), operator: watching(t, cluster, true), namespace: cluster.Namespace(t), queues: scaled(queues)}
	began := time.Now()
	b.fill()
	figure.Note(fmt.Sprintf("writing %d workloads and %d pods on %d nodes", b.queues*inQueue, b.queues*podsOfQueue, scaled(nodes)), figure.Seconds(time.Since(began)))

	start := func(elects string) *operator.Operator {
		o := operator.Start(t, *operatorBinary, cluster, "--leader-elect="+elects)
		o.AwaitReady(t)
		return o
	}
	first := start("true")
	b.decides(func() {})
	second := start("true")
	b.settles()
	used, usedBeside, writes := first.CPU(t), second.CPU(t), first.Writes(t)
	await(t, idle)
	used, usedBeside = first.CPU(t)-used, second.CPU(t)-usedBeside
	share := used.Seconds() / idle.Seconds()
	figure.Reach(t, "CPU of the leader while nothing changes", fmt.Sprintf("%.1f %%", 100*share), fmt.Sprintf("%.0f %%", 100*idleCPUMost), share <= idleCPUMost)
	figure.Note("  of the one beside it", fmt.Sprintf("%.1f %%", 100*usedBeside.Seconds()/idle.Seconds()))
	figure.Note("  writes of the leader in a minute, leases included", fmt.Sprintf("%.0f", first.Writes(t)-writes))
	b.holds("the leader", first)
	b.holds("the one beside it", second)

	died := time.Now()
	took := b.decides(func() { first.End(syscall.SIGKILL) }).Sub(died)
	figure.Reach(t, "from the leader's death to the first admission", figure.Seconds(took), figure.Seconds(decidesMost), took <= decidesMost)
	b.holds("the new leader", second)

	second.End(syscall.SIGKILL)
	var third *operator.Operator
	decided := b.decides(func() { third = operator.Start(t, *operatorBinary, cluster) }) // alone: whose lease it is does not matter
	took = decided.Sub(third.Began)
	figure.Reach(t, "from an operator's start to its first admission", figure.Seconds(took), figure.Seconds(decidesMost), took <= decidesMost)
	b.holds("the operator after its start", third)
}

// holds checks what the operator has held in memory at most.
func (b *bench) holds(who string, o *operator.Operator) {
	b.Helper()
	peak := o.Peak(b.T)
	figure.Reach(b.T, "peak memory of "+who, figure.MiB(peak), figure.MiB(memoryMost), peak <= memoryMost)
	figure.Note("  now", figure.MiB(o.Resident(b.T)))
}

// settles waits until nobody writes anything more but leases.
func (b *bench) settles() {
	b.Helper()
	writes := func() (sum float64) {
		for _, count := range b.cluster.Writes(b.T) {
			sum += count
		}
		return sum
	}
	for before, since := writes(), time.Now(); ; {
		await(b.T, quiet)
		now := writes()
		if now == before {
			return
		}
		if time.Since(since) > patience {
			b.Fatal("something is written all the time")
		}
		before = now
	}
}

// decides does what is given, ends a Workload in each queue, and says when the first of those that wait was admitted. It returns
// when one of each queue is.
func (b *bench) decides(then func()) time.Time {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(kueue.GroupVersion.WithKind("WorkloadList"))
	if err := b.client.List(ctx, &list, client.InNamespace(b.namespace), client.Limit(1)); err != nil {
		b.Fatal(err)
	}
	events, err := b.client.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(b.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	then()
	b.each(b.queues, func(i int) error { return b.finish(ctx, i, b.ended) })
	b.ended++
	var first time.Time
	for admitted := map[string]bool{}; len(admitted) < b.queues; {
		event, open := <-events.ResultChan()
		if !open {
			b.Fatalf("the watch ended with %d of %d admitted", len(admitted), b.queues)
		}
		w, ok := event.Object.(*kueue.Workload)
		if !ok || w.Status.Admission == nil || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) || !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) {
			continue
		}
		if len(admitted) == 0 {
			first = time.Now()
		}
		admitted[w.Name] = true
	}
	return first
}

// fill makes the queues, their Workloads, and the pods of those that hold quota.
func (b *bench) fill() {
	b.Helper()
	ctx := b.Context()
	b.make(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavor}})
	b.each(b.queues, func(i int) error {
		if err := b.client.Create(ctx, clusterQueue(i)); err != nil {
			return err
		}
		return b.client.Create(ctx, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: queueName(i)},
			Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(queueName(i))}})
	})
	b.each(b.queues*inQueue, func(k int) error {
		i, n := k%b.queues, k/b.queues // in the order in which they are to be admitted
		w := workload(b.namespace, i, n)
		if err := b.client.Create(ctx, w); err != nil || n >= inQueue/2 {
			return err
		}
		if err := b.admit(ctx, w, i); err != nil {
			return err
		}
		for p := range podsOf(n) {
			if err := b.client.Create(ctx, pod(w, p, (k*3+int(p))%scaled(nodes))); err != nil {
				return err
			}
		}
		return nil
	})
}

// make creates an object of the whole cluster for this test.
func (b *bench) make(o client.Object) {
	b.Helper()
	if err := b.client.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// each does something so many times, some at once.
func (b *bench) each(count int, do func(int) error) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(creators)
	for i := range count {
		group.Go(func() error { return do(i) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) admit(ctx context.Context, w *kueue.Workload, queue int) error {
	after := w.DeepCopy()
	count := w.Spec.PodSets[0].Count
	usage := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(count), resource.DecimalSI)}
	for name, of := range requests {
		of.Mul(int64(count))
		usage[name] = of
	}
	flavors := map[corev1.ResourceName]kueue.ResourceFlavorReference{}
	for name := range usage {
		flavors[name] = flavor
	}
	after.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queueName(queue)), PodSetAssignments: []kueue.PodSetAssignment{{
		Name: kueue.DefaultPodSetName, Count: &count, Flavors: flavors, ResourceUsage: usage,
	}}}
	for kind, reason := range map[string]string{kueue.WorkloadQuotaReserved: kueue.WorkloadQuotaReservedReason, kueue.WorkloadAdmitted: kueue.WorkloadAdmittedReason} {
		meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "as the operator would", ObservedGeneration: 1})
	}
	return b.operator.Status().Patch(ctx, after, client.MergeFrom(w))
}

// finish ends the nth Workload of a queue.
func (b *bench) finish(ctx context.Context, queue, n int) error {
	w := &kueue.Workload{}
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: workloadName(queue, n)}, w); err != nil {
		return err
	}
	after := w.DeepCopy()
	meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: kueue.WorkloadFinishedReasonSucceeded, Message: "It ran its time"})
	return b.client.Status().Patch(ctx, after, client.MergeFrom(w))
}

func queueName(i int) string { return fmt.Sprintf("size-%d", i) }

func workloadName(queue, n int) string { return fmt.Sprintf("%s-%d", queueName(queue), n) }

// podsOf is how many pods the nth Workload of a queue has: 200 those of a half together.
func podsOf(n int) int32 {
	if n%3 == 2 {
		return 2
	}
	return 3
}

func clusterQueue(i int) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queueName(i)}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods},
			Flavors: []kueue.FlavorQuotas{{Name: flavor, Resources: []kueue.ResourceQuota{
				{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("1k")}, {Name: corev1.ResourceMemory, NominalQuota: resource.MustParse("1Ti")},
				{Name: corev1.ResourcePods, NominalQuota: *resource.NewQuantity(podsOfQueue, resource.DecimalSI)}}}}}},
	}}
}

func workload(namespace string, queue, n int) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: workloadName(queue, n)},
		Spec: kueue.WorkloadSpec{
			QueueName: kueue.LocalQueueName(queueName(queue)), Priority: ptr.To[int32](0),
			PodSets: []kueue.PodSet{{Name: kueue.DefaultPodSetName, Count: podsOf(n), Template: corev1.PodTemplateSpec{Spec: podSpec()}}},
		},
	}
}

// pod is one of the Workload's, on a simulated node, as jobs' pods are.
func pod(w *kueue.Workload, p int32, node int) *corev1.Pod {
	spec := podSpec()
	spec.NodeName = fmt.Sprintf("sim-%05d", node)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: fmt.Sprintf("%s-%d", w.Name, p),
		Labels:      map[string]string{"batch.kubernetes.io/job-name": w.Name, "app": "train"},
		Annotations: map[string]string{"muster.dev/sim-duration": "24h", "batch.kubernetes.io/job-completion-index": fmt.Sprint(p)},
	}, Spec: spec}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0),
		Tolerations: []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/team/trainer:1", Command: []string{"python", "train.py", "--epochs", "90"},
			Env:       []corev1.EnvVar{{Name: "NCCL_DEBUG", Value: "INFO"}, {Name: "OMP_NUM_THREADS", Value: "8"}},
			Resources: corev1.ResourceRequirements{Requests: requests}}},
	}
}

func watching(t *testing.T, cluster *testcluster.Cluster, asOperator bool) client.WithWatch {
	t.Helper()
	config := cluster.Config
	if asOperator {
		config = operator.Impersonate(config)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// await lets time pass: that nothing happens can only be seen by waiting.
func await(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
