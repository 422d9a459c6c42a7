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
	inQueue     = 150 // Workloads of each queue, of which the first half use all quota
	podsOfQueue = 200 // pods of that half
	flavor      = "bench"
	creators    = 16
	memoryMost  = 300_000_000
	idleCPUMost = 0.05
	admitMost   = 5 * time.Second
	patience    = 5 * time.Minute

	// quiet is the time without writes after which the cluster counts as settled: reasons are written in the
	// background, at most 300 a second. idle is the time over which CPU is measured, long enough for an audit of the
	// quotas.
	quiet = 5 * time.Second
	idle  = 60 * time.Second
)

// requests are the resources of each pod. Only the quota of pods is too small for all Workloads.
var requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"),
	corev1.ResourceMemory: resource.MustParse("16Mi")}

// bench is the cluster under test.
type bench struct {
	*testing.T
	cluster *testcluster.Cluster
	client  client.WithWatch
	// operator is a client with the rights of the operator.
	operator  client.WithWatch
	namespace string
	queues    int
	// finished is how many Workloads of each queue have finished.
	finished int
}

// TestAtSize measures the memory and idle CPU time of a leader and a standby, and the time to the first admission after
// the leader's death and after an operator's start. Half of the Workloads use all quota and have their pods on
// simulated nodes; the others are pending. When one Workload of each queue finishes, the next of the queue is admitted.
func TestAtSize(t *testing.T) {
	cluster := testcluster.Get(t)
	b := &bench{T: t, cluster: cluster, client: watching(t, cluster, false), operator: watching(t, cluster, true),
		namespace: cluster.Namespace(t), queues: scaled(queues)}
	began := time.Now()
	b.fill()
	figure.Note(fmt.Sprintf("writing %d workloads and %d pods on %d nodes", b.queues*inQueue, b.queues*podsOfQueue,
		scaled(nodes)), figure.Seconds(time.Since(began)))

	start := func() *operator.Operator {
		o := operator.Start(t, *operatorBinary, cluster, "--leader-elect=true")
		o.AwaitReady(t)
		return o
	}
	first := start()
	b.untilAdmitted(func() {})
	second := start()
	b.awaitNoWrites()
	used, usedByStandby, writes := first.CPU(t), second.CPU(t), first.Writes(t)
	await(t, idle)
	used, usedByStandby = first.CPU(t)-used, second.CPU(t)-usedByStandby
	share := used.Seconds() / idle.Seconds()
	figure.Reach(t, "CPU of the leader while nothing changes", fmt.Sprintf("%.1f %%", 100*share),
		fmt.Sprintf("%.0f %%", 100*idleCPUMost), share <= idleCPUMost)
	figure.Note("  of the standby", fmt.Sprintf("%.1f %%", 100*usedByStandby.Seconds()/idle.Seconds()))
	figure.Note("  writes of the leader in a minute, leases included", fmt.Sprintf("%.0f", first.Writes(t)-writes))
	b.checkMemory("the leader", first)
	b.checkMemory("the standby", second)

	died := time.Now()
	took := b.untilAdmitted(func() { first.End(syscall.SIGKILL) }).Sub(died)
	figure.Reach(t, "from the leader's death to the first admission", figure.Seconds(took), figure.Seconds(admitMost),
		took <= admitMost)
	b.checkMemory("the standby once it leads", second)

	second.End(syscall.SIGKILL)
	var third *operator.Operator
	// without leader election: the old lease does not matter
	admitted := b.untilAdmitted(func() { third = operator.Start(t, *operatorBinary, cluster) })
	took = admitted.Sub(third.Began)
	figure.Reach(t, "from an operator's start to its first admission", figure.Seconds(took), figure.Seconds(admitMost),
		took <= admitMost)
	b.checkMemory("an operator started again", third)
}

// checkMemory checks the peak memory of an operator.
func (b *bench) checkMemory(which string, o *operator.Operator) {
	b.Helper()
	peak := o.Peak(b.T)
	figure.Reach(b.T, "peak memory of "+which, figure.MiB(peak), figure.MiB(memoryMost), peak <= memoryMost)
	figure.Note("  now", figure.MiB(o.Resident(b.T)))
}

// awaitNoWrites waits until there are no writes other than of leases.
func (b *bench) awaitNoWrites() {
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
			b.Fatalf("clients did not stop writing within %s: %.0f writes so far", patience, now)
		}
		before = now
	}
}

// untilAdmitted calls do, finishes a Workload of each queue, waits until a pending one of each was admitted, and
// returns when the first of these admissions was seen.
func (b *bench) untilAdmitted(do func()) time.Time {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(kueue.GroupVersion.WithKind("WorkloadList"))
	if err := b.client.List(ctx, &list, client.InNamespace(b.namespace), client.Limit(1)); err != nil {
		b.Fatal(err)
	}
	events, err := b.client.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(b.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	do()
	b.each(b.queues, func(i int) error { return b.finish(ctx, i, b.finished) })
	b.finished++
	var first time.Time
	for admitted := map[string]bool{}; len(admitted) < b.queues; {
		event, open := <-events.ResultChan()
		if !open {
			b.Fatalf("the watch ended after %d of %d Workloads were admitted", len(admitted), b.queues)
		}
		w, ok := event.Object.(*kueue.Workload)
		if !ok || w.Status.Admission == nil || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) ||
			!meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) {
			continue
		}
		if len(admitted) == 0 {
			first = time.Now()
		}
		admitted[w.Name] = true
	}
	return first
}

// fill creates the queues, their Workloads, and the admissions and pods of the first half.
func (b *bench) fill() {
	b.Helper()
	ctx := b.Context()
	b.create(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavor}})
	b.each(b.queues, func(i int) error {
		if err := b.client.Create(ctx, clusterQueue(i)); err != nil {
			return err
		}
		return b.client.Create(ctx,
			&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: queueName(i)},
				Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(queueName(i))}})
	})
	b.each(b.queues*inQueue, func(k int) error {
		i, n := k%b.queues, k/b.queues // oldest first in each queue: the order of admission
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

// create creates an object, which stays until the cluster ends.
func (b *bench) create(o client.Object) {
	b.Helper()
	if err := b.client.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// each calls do for 0 to count-1, creators at a time, and fails the test with the first error.
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

// admit writes an admission to the Workload as the operator would.
func (b *bench) admit(ctx context.Context, w *kueue.Workload, queue int) error {
	after := w.DeepCopy()
	count := w.Spec.PodSets[0].Count
	usage := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(count), resource.DecimalSI)}
	for name, quantity := range requests {
		quantity.Mul(int64(count))
		usage[name] = quantity
	}
	flavors := map[corev1.ResourceName]kueue.ResourceFlavorReference{}
	for name := range usage {
		flavors[name] = flavor
	}
	after.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queueName(queue)),
		PodSetAssignments: []kueue.PodSetAssignment{{
			Name: kueue.DefaultPodSetName, Count: &count, Flavors: flavors, ResourceUsage: usage,
		}}}
	for kind, reason := range map[string]string{kueue.WorkloadQuotaReserved: kueue.WorkloadQuotaReservedReason,
		kueue.WorkloadAdmitted: kueue.WorkloadAdmittedReason} {
		meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
			Reason: reason, Message: "as the operator would", ObservedGeneration: 1})
	}
	return b.operator.Status().Patch(ctx, after, client.MergeFrom(w))
}

// finish marks the nth Workload of a queue Finished.
func (b *bench) finish(ctx context.Context, queue, n int) error {
	w := &kueue.Workload{}
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: workloadName(queue, n)}, w); err != nil {
		return err
	}
	after := w.DeepCopy()
	meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished,
		Status: metav1.ConditionTrue, Reason: kueue.WorkloadFinishedReasonSucceeded, Message: "It ran its time"})
	return b.client.Status().Patch(ctx, after, client.MergeFrom(w))
}

func queueName(i int) string { return fmt.Sprintf("size-%d", i) }

func workloadName(queue, n int) string { return fmt.Sprintf("%s-%d", queueName(queue), n) }

// podsOf returns the number of pods of the nth Workload of a queue; the first half has 200 together.
func podsOf(n int) int32 {
	if n%3 == 2 {
		return 2
	}
	return 3
}

func clusterQueue(i int) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queueName(i)}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU,
			corev1.ResourceMemory, corev1.ResourcePods},
			Flavors: []kueue.FlavorQuotas{{Name: flavor, Resources: []kueue.ResourceQuota{
				{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("1k")},
				{Name: corev1.ResourceMemory, NominalQuota: resource.MustParse("1Ti")},
				{Name: corev1.ResourcePods, NominalQuota: *resource.NewQuantity(podsOfQueue, resource.DecimalSI)}}}}}},
	}}
}

func workload(namespace string, queue, n int) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: workloadName(queue, n)},
		Spec: kueue.WorkloadSpec{
			QueueName: kueue.LocalQueueName(queueName(queue)), Priority: ptr.To[int32](0),
			PodSets: []kueue.PodSet{{Name: kueue.DefaultPodSetName, Count: podsOf(n),
				Template: corev1.PodTemplateSpec{Spec: podSpec()}}},
		},
	}
}

// pod returns a pod of the Workload on a simulated node, with the labels and annotations of a Job's pod.
func pod(w *kueue.Workload, p int32, node int) *corev1.Pod {
	spec := podSpec()
	spec.NodeName = fmt.Sprintf("sim-%05d", node)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: fmt.Sprintf("%s-%d", w.Name, p),
		Labels: map[string]string{"batch.kubernetes.io/job-name": w.Name, "app": "train"},
		Annotations: map[string]string{"muster.dev/sim-duration": "24h",
			"batch.kubernetes.io/job-completion-index": fmt.Sprint(p)},
	}, Spec: spec}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0),
		Tolerations: []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/team/trainer:1",
			Command:   []string{"python", "train.py", "--epochs", "90"},
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

// await waits for the duration: there is no event for the absence of events.
func await(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
