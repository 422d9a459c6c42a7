//go:build bench

package endtoend

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/bench/operator"
)

func newBench(t *testing.T) *bench {
	t.Helper()
	cluster := testcluster.Get(t)
	return &bench{T: t, cluster: cluster, client: watching(t, cluster.Config),
		operator: watching(t, operator.Impersonate(cluster.Config)),
		server:   figure.ProcessOf(t, filepath.Join(cluster.Dir, "pid"))}
}

type bench struct {
	*testing.T
	cluster *testcluster.Cluster
	client  client.WithWatch
	// operator is a client with the rights of the operator.
	operator client.WithWatch
	// server is the control plane process; used is its CPU time for the last load, until all pods were
	// bound.
	server figure.Process
	used   time.Duration
	// running is the operator, nil before it is started; operatorUsed is its CPU time for the last load.
	running      *operator.Operator
	operatorUsed time.Duration
	// began is when the creation of the last load started, lastCreated when its last pod was first seen.
	began, lastCreated time.Time
	// wroteBefore, wroteBound and wrote are the write counts before the last load, when it was bound, and
	// when its Workloads reported ready pods.
	wroteBefore, wroteBound, wrote map[string]float64
	// whenBound is called when the pods of a load are bound and nothing is timed any more, unless it is nil.
	whenBound func(namespace string)
}

func watching(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// operate starts the operator until rest or the end of the test, and creates its queue.
func (b *bench) operate() *operator.Operator {
	b.Helper()
	b.running = operator.Start(b.T, *operatorBinary, b.cluster, strings.Fields(*operatorFlags)...)
	b.running.AwaitReady(b.T)
	b.makeQueue()
	return b.running
}

// rest ends the operator: the floors have none.
func (b *bench) rest() {
	b.Helper()
	b.running.End(syscall.SIGTERM)
	b.running = nil
}

// play creates the objects in a new namespace, waits until the number of pods is bound, and removes
// everything.
func (b *bench) play(what string, pods int, load func(namespace string) []client.Object) time.Duration {
	b.Helper()
	return b.playBy(what, pods, load, func(ctx context.Context, o client.Object) error { return b.client.Create(ctx, o) })
}

// playBy plays the workloads, and creates each object with create.
func (b *bench) playBy(what string, pods int, load func(namespace string) []client.Object,
	place func(context.Context, client.Object) error) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	namespace := b.cluster.Namespace(b.T)
	if what == "single" || what == "gang" {
		create(b.T, b.client, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: queueOfAll},
			Spec: kueue.LocalQueueSpec{ClusterQueue: queueOfAll}})
	}
	objects := load(namespace)
	b.wroteBefore = b.cluster.Writes(b.T)
	used, operatorUsed := b.server.CPU(b.T), b.operatorCPU()
	b.began = time.Now()
	creating := each(objects, func(o client.Object) error {
		err := place(ctx, o)
		if err != nil {
			cancel() // stop waiting for pods that will not be created
		}
		return err
	})
	done := make(chan error, 1)
	go func() { done <- creating() }()
	if err := b.awaitBound(ctx, namespace, pods); err != nil {
		cancel()
		b.Fatalf("%s: %v", what, errors.Join(<-done, err))
	}
	wall := time.Since(b.began)
	b.used, b.operatorUsed = b.server.CPU(b.T)-used, b.operatorCPU()-operatorUsed
	b.wroteBound = b.cluster.Writes(b.T)
	if b.whenBound != nil {
		b.whenBound(namespace)
	}
	if what == "single" {
		b.awaitPodsReady(ctx, namespace, pods)
	}
	b.wrote = b.cluster.Writes(b.T) // before the removal, which does not count
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.clear(ctx, namespace)
	return wall
}

// operatorCPU returns the CPU time of the operator, 0 if there is none.
func (b *bench) operatorCPU() time.Duration {
	b.Helper()
	if b.running == nil {
		return 0
	}
	return b.running.CPU(b.T)
}

// awaitBound returns when the number of pods in the namespace is bound, and records when the last one was
// first seen. If the API server ends the watch, as it does when the watch falls behind, it starts again
// with a list.
func (b *bench) awaitBound(ctx context.Context, namespace string, pods int) error {
	created, bound := map[string]bool{}, map[string]bool{}
	see := func(pod *corev1.Pod) {
		if !created[pod.Name] {
			created[pod.Name], b.lastCreated = true, time.Now()
		}
		if pod.Spec.NodeName != "" {
			bound[pod.Name] = true
		}
	}
	for len(bound) < pods {
		var list corev1.PodList
		if err := b.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("%d of %d pods were bound: %w", len(bound), pods, err)
		}
		for i := range list.Items {
			see(&list.Items[i])
		}
		events, err := b.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			return err
		}
		for len(bound) < pods {
			event, open := <-events.ResultChan()
			if !open {
				break
			}
			if pod, ok := event.Object.(*corev1.Pod); ok {
				see(pod)
			}
		}
		events.Stop()
	}
	return nil
}

// each starts to call do for all objects concurrently, and returns a function that waits for the end.
func each(objects []client.Object, do func(client.Object) error) (wait func() error) {
	var next atomic.Int64
	var workers errgroup.Group
	for range creators {
		workers.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(objects) {
					return nil
				}
				if err := do(objects[i]); err != nil {
					return err
				}
			}
		})
	}
	return workers.Wait
}

// awaitPodsReady returns when the given number of Workloads in the namespace reports ready pods. The operator delays
// these writes while the API server is busy, so writes can be attributed only after all of them.
func (b *bench) awaitPodsReady(ctx context.Context, namespace string, workloads int) {
	b.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		var list kueue.WorkloadList
		if err := b.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		ready := 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, kueue.WorkloadPodsReady) {
				ready++
			}
		}
		if ready == workloads {
			return
		}
		select {
		case <-tick.C: // polling is cheaper than a watch of thousands, and nothing is timed here
		case <-ctx.Done():
			b.Fatalf("%d of %d Workloads report that their pods are ready: %v", ready, workloads, ctx.Err())
		}
	}
}

// clear removes the load and returns when nothing is left of it. It deletes objects one by one and
// concurrently: one request that deletes thousands would exceed the request timeout.
func (b *bench) clear(ctx context.Context, namespace string) {
	b.Helper()
	for _, kind := range loadKinds() {
		if err := b.client.List(ctx, kind, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		var left []client.Object
		_ = meta.EachListItem(kind, func(o runtime.Object) error { left = append(left, o.(client.Object)); return nil })
		err := each(left, func(o client.Object) error {
			return client.IgnoreNotFound(b.client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground),
				client.GracePeriodSeconds(0)))
		})()
		if err != nil {
			b.Fatal(err)
		}
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for b.anyLeft(ctx, namespace) {
		select {
		case <-tick.C: // there is no event for the end of all deletions
		case <-ctx.Done():
			b.Fatalf("some of the load is left: %v", ctx.Err())
		}
	}
	b.awaitCalm(ctx)
}

// calm is how long no pods and Jobs must be written before the next load.
const calm = 2 * time.Second

// awaitCalm returns when there are no more writes: after the deletion the Job controller still removes
// finalizers from pods.
func (b *bench) awaitCalm(ctx context.Context) {
	b.Helper()
	tick := time.NewTicker(calm)
	defer tick.Stop()
	for before := -1.0; ; {
		now, wrote := 0.0, b.cluster.Writes(b.T)
		for what, n := range wrote {
			if strings.Contains(what, "pods") || strings.Contains(what, "jobs") || strings.Contains(what, "workloads") {
				now += n
			}
		}
		if now == before {
			return
		}
		before = now
		select {
		case <-tick.C: // there is no event for the end of writes
		case <-ctx.Done():
			b.Fatalf("the load before is still being removed: %v", ctx.Err())
		}
	}
}

// anyLeft reports whether any object of the load still exists: the writes that remove finalizers would
// count for the next load.
func (b *bench) anyLeft(ctx context.Context, namespace string) bool {
	b.Helper()
	for _, kind := range loadKinds() {
		if err := b.client.List(ctx, kind, client.InNamespace(namespace), client.Limit(1)); err != nil {
			b.Fatal(err)
		}
		if meta.LenList(kind) > 0 {
			return true
		}
	}
	return false
}

// loadKinds returns a list object for each kind in a load.
func loadKinds() []client.ObjectList {
	return []client.ObjectList{&jobset.JobSetList{}, &tensorstack.GenericJobList{}, &volcano.JobList{},
		&breezeml.TrainingJobList{}, &batchv1.JobList{}, &kueue.WorkloadList{}, &corev1.PodList{}}
}
