//go:build bench

package endtoend

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	return &bench{T: t, cluster: cluster, client: watching(t, cluster.Config), operator: watching(t, operator.Impersonate(cluster.Config)),
		server: figure.ProcessOf(t, filepath.Join(cluster.Dir, "pid"))}
}

type bench struct {
	*testing.T
	cluster *testcluster.Cluster
	client  client.WithWatch
	// operator may write what only the operator may.
	operator client.WithWatch
	// server is the process of the control plane, and used what CPU time it took until the last load was bound.
	server figure.Process
	used   time.Duration
	// running is the operator, nil before there is one, and operatorUsed what CPU time it took until the last load was bound.
	running      *operator.Operator
	operatorUsed time.Duration
	// began is when the last load came, made when the last of its pods did.
	began, made time.Time
	// wroteBefore and wroteBound are what had been written before the last load came and when it was bound, wrote when its
	// Workloads had been told so.
	wroteBefore, wroteBound, wrote map[string]float64
}

func watching(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// operate starts the operator and makes its queue. It ends with the test.
func (b *bench) operate() *operator.Operator {
	b.Helper()
	b.running = operator.Start(b.T, *operatorBinary, b.cluster, strings.Fields(*operatorFlags)...)
	b.running.AwaitReady(b.T)
	b.makeQueue()
	return b.running
}

// play creates the objects in a namespace of their own, waits until so many pods of it are bound, and removes all of it.
func (b *bench) play(what string, pods int, load func(namespace string) []client.Object) time.Duration {
	b.Helper()
	return b.playBy(what, pods, load, func(ctx context.Context, o client.Object) error { return b.client.Create(ctx, o) })
}

// playBy is play with another way to bring an object.
func (b *bench) playBy(what string, pods int, load func(namespace string) []client.Object, place func(context.Context, client.Object) error) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	namespace := b.cluster.Namespace(b.T)
	if what == "single" || what == "gang" {
		create(b.T, b.client, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: queueOfAll}, Spec: kueue.LocalQueueSpec{ClusterQueue: queueOfAll}})
	}
	objects := load(namespace)
	b.wroteBefore = b.cluster.Writes(b.T)
	used, operatorUsed := b.server.CPU(b.T), b.operatorCPU()
	b.began = time.Now()
	creating := each(objects, func(o client.Object) error {
		err := place(ctx, o)
		if err != nil {
			cancel() // nobody waits for pods that never come
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
	if what == "single" {
		b.awaitTold(ctx, namespace, pods)
	}
	b.wrote = b.cluster.Writes(b.T) // before the removal, which is none of it
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.clear(ctx, namespace)
	return wall
}

// operatorCPU is what CPU time the operator has taken, if there is one.
func (b *bench) operatorCPU() time.Duration {
	b.Helper()
	if b.running == nil {
		return 0
	}
	return b.running.CPU(b.T)
}

// awaitBound returns when so many pods of the namespace are bound, and notes when the last of them was seen for the first time. A
// watch that the API server ends, as it does with one that falls behind, is begun again from a list.
func (b *bench) awaitBound(ctx context.Context, namespace string, pods int) error {
	made, bound := map[string]bool{}, map[string]bool{}
	see := func(pod *corev1.Pod) {
		if !made[pod.Name] {
			made[pod.Name], b.made = true, time.Now()
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
		events, err := b.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
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

// each does something with all objects, side by side, and gives what waits for the end of it.
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

// awaitTold returns when so many Workloads of the namespace say that their pods are ready: news of pods, which waits while the API
// server is busy, so that writes can be told apart only once all of it is told.
func (b *bench) awaitTold(ctx context.Context, namespace string, workloads int) {
	b.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		var list kueue.WorkloadList
		if err := b.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		told := 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, kueue.WorkloadPodsReady) {
				told++
			}
		}
		if told == workloads {
			return
		}
		select {
		case <-tick.C: // a watch of thousands would cost more than to look now and then, and nothing is timed here
		case <-ctx.Done():
			b.Fatalf("%d of %d Workloads were told that their pods are ready: %v", told, workloads, ctx.Err())
		}
	}
}

// clear removes the load, and returns when nothing is left of it. Objects go one by one and side by side: to remove
// thousands by one request takes longer than a request may.
func (b *bench) clear(ctx context.Context, namespace string) {
	b.Helper()
	for _, kind := range loadKinds() {
		if err := b.client.List(ctx, kind, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		var left []client.Object
		_ = meta.EachListItem(kind, func(o runtime.Object) error { left = append(left, o.(client.Object)); return nil })
		err := each(left, func(o client.Object) error {
			return client.IgnoreNotFound(b.client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground), client.GracePeriodSeconds(0)))
		})()
		if err != nil {
			b.Fatal(err)
		}
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for b.anyLeft(ctx, namespace) {
		select {
		case <-tick.C: // the end of deletions by others has no event of its own
		case <-ctx.Done():
			b.Fatalf("some of the load is left: %v", ctx.Err())
		}
	}
	b.awaitCalm(ctx)
}

// calm is for how long nothing is written of pods and Jobs before the next load comes.
const calm = 2 * time.Second

// awaitCalm returns when nobody writes any more: the Job controller goes on to take its finalizers off pods that are gone.
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
		case <-tick.C: // that nothing happens has no event
		case <-ctx.Done():
			b.Fatalf("the load before is still being removed: %v", ctx.Err())
		}
	}
}

// anyLeft reports whether anything of the load is still there: letting go of Jobs and Workloads takes writes, which would count
// for the load that comes next.
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

// loadKinds are lists of what a load consists of.
func loadKinds() []client.ObjectList {
	return []client.ObjectList{&jobset.JobSetList{}, &tensorstack.GenericJobList{}, &volcano.JobList{}, &breezeml.TrainingJobList{}, &batchv1.JobList{}, &kueue.WorkloadList{}, &corev1.PodList{}}
}
