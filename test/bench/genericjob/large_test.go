//go:build bench

package genericjob

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/bench/operator"
)

const (
	largeReplicas  = 1000
	reconcileMost  = 5 * time.Millisecond
	creationMost   = 1.15
	creationRounds = 3
	idleReconciles = 50
	podEvents      = 1500
	// eventMost is the most that an event of a pod of the large job may cost, relative to one of a job of 10. Both cost
	// the same; the rest allows for measurement error.
	eventMost = 1.3
)

// noScheduler is a scheduler name that no scheduler has, so that pods are created and never bound.
const noScheduler = "none"

// TestLargeJob measures a job of 1,000 replicas: the time until all its pods exist, compared to a floor of a client
// that creates the same pods as fast as it can; the time of a reconcile with nothing to do; and the CPU time of an
// event of one of its pods, compared to one of a job of 10.
func TestLargeJob(t *testing.T) {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := makeNamespace(t, c)
	o := startOperator(t, cluster)
	var took, floor time.Duration
	for round := range creationRounds {
		// The best round counts, because other load on the machine only makes rounds slower.
		plain := timeToPods(t, c, namespace,
			func() error { return createPlain(t.Context(), c, namespace, fmt.Sprintf("plain-%d", round)) })
		removePods(t, c, namespace)
		job := jobOf(namespace, fmt.Sprintf("large-%d", round), largeReplicas, time.Hour)
		job.Spec.ReplicaSpecs[0].Template.Spec.SchedulerName = noScheduler
		created := timeToPods(t, c, namespace, func() error { return c.Create(t.Context(), job) })
		if round == 0 || plain < floor {
			floor = plain
		}
		if round == 0 || created < took {
			took = created
		}
		if round < creationRounds-1 {
			if err := c.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
				t.Fatal(err)
			}
			awaitNoPods(t, c, namespace)
		}
	}
	ratio := float64(took) / float64(floor)
	figure.Reach(t, fmt.Sprintf("creation of a %d-replica job, to the floor", largeReplicas), fmt.Sprintf("%.2f", ratio),
		fmt.Sprint(creationMost), ratio <= creationMost)
	figure.Note("  the job, and the floor", figure.Seconds(took)+", "+figure.Seconds(floor))

	large := types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("large-%d", creationRounds-1)}
	awaitNoReconciles(t, o)
	each := timeToReconcile(t, c, o, large)
	figure.Reach(t, fmt.Sprintf("reconcile of a %d-replica job at rest", largeReplicas), each.String(),
		reconcileMost.String(), each < reconcileMost)

	small := jobOf(namespace, "small", 10, time.Hour)
	small.Spec.ReplicaSpecs[0].Template.Spec.SchedulerName = noScheduler
	timeToMorePods(t, c, namespace, 10, func() error { return c.Create(t.Context(), small) })
	awaitNoReconciles(t, o)
	for _, kind := range []struct {
		what    string
		matters bool
	}{{"a pod event without news", false}, {"a pod event with news", true}} {
		few, fewReconciles := costOfEvents(t, c, o, namespace, "small-worker-0", kind.matters)
		many, manyReconciles := costOfEvents(t, c, o, namespace, large.Name+"-worker-0", kind.matters)
		what := kind.what + ", CPU, in a job of 10 and of 1,000"
		figure.Note(what, fmt.Sprintf("%s, %s", few, many))
		if ratio := float64(many) / float64(few); !kind.matters {
			figure.Reach(t, "  ratio", fmt.Sprintf("%.2f", ratio), fmt.Sprint(eventMost), ratio <= eventMost)
		}
		figure.Note(fmt.Sprintf("  reconciles for %d of them", podEvents),
			fmt.Sprintf("%d, %d", fewReconciles, manyReconciles))
	}
}

// createPlain creates pods like those of the large job, without a job.
func createPlain(ctx context.Context, c client.Client, namespace, name string) error {
	var group errgroup.Group
	group.SetLimit(50) // the operator's limit of concurrent writes for a job
	for i := range largeReplicas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-worker-%d", name, i), Namespace: namespace},
			Spec: template(time.Hour).Spec}
		pod.Spec.SchedulerName = noScheduler
		pod.Labels = map[string]string{"genericjob": name, "genericjob-replica": pod.Name, "muster.dev/job-uid": "x"}
		group.Go(func() error { return c.Create(ctx, pod) })
	}
	return group.Wait()
}

// timeToPods calls do and returns how long it takes until the pods of the large job have been added to the namespace.
func timeToPods(t *testing.T, c client.WithWatch, namespace string, do func() error) time.Duration {
	return timeToMorePods(t, c, namespace, largeReplicas, do)
}

// timeToMorePods calls do and returns how long it takes until the namespace has that many more pods than before. The
// test fails if do does.
func timeToMorePods(t *testing.T, c client.WithWatch, namespace string, pods int, do func() error) time.Duration {
	t.Helper()
	there := list(t, c, namespace)
	wanted := len(there.Items) + pods
	began := time.Now()
	failed := make(chan error, 1)
	go func() {
		if err := do(); err != nil {
			failed <- err
		}
	}()
	for len(there.Items) < wanted { // a watch may end early, so the list decides
		watching := follow(t, c, namespace, there.ResourceVersion)
		open := true
		for missing := wanted - len(there.Items); missing > 0 && open; {
			var event watch.Event
			select {
			case err := <-failed:
				t.Fatal(err)
			case event, open = <-watching.ResultChan():
			}
			if event.Type == watch.Added {
				missing--
			}
		}
		took := time.Since(began)
		watching.Stop()
		if there = list(t, c, namespace); len(there.Items) >= wanted {
			return took
		}
	}
	return time.Since(began)
}

func list(t *testing.T, c client.WithWatch, namespace string) *corev1.PodList {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return &pods
}

// follow watches the namespace's pods from the version.
func follow(t *testing.T, c client.WithWatch, namespace, version string) watch.Interface {
	t.Helper()
	watching, err := c.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		t.Fatal(err)
	}
	return watching
}

// removePods deletes the namespace's pods and waits until they are gone.
func removePods(t *testing.T, c client.WithWatch, namespace string) {
	t.Helper()
	if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace),
		client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	awaitNoPods(t, c, namespace)
}

func awaitNoPods(t *testing.T, c client.WithWatch, namespace string) {
	t.Helper()
	for {
		pods := list(t, c, namespace)
		if len(pods.Items) == 0 {
			return
		}
		watching := follow(t, c, namespace, pods.ResourceVersion)
		for gone := 0; gone < len(pods.Items); {
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

// awaitNoReconciles waits until the operator has not reconciled GenericJobs for six seconds.
func awaitNoReconciles(t *testing.T, o *operator.Operator) {
	t.Helper()
	for {
		before, _ := reconciles(t, o)
		time.Sleep(6 * time.Second) // there is no event after the last reconcile
		if after, _ := reconciles(t, o); after == before {
			return
		}
	}
}

// timeToReconcile returns the mean time of a reconcile of the job that writes nothing. Changes of an annotation cause
// the reconciles.
func timeToReconcile(t *testing.T, c client.Client, o *operator.Operator, name types.NamespacedName) time.Duration {
	t.Helper()
	first, before := reconciles(t, o)
	for i := range idleReconciles {
		job := &tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: name.Name, Namespace: name.Namespace}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"bench":"%d"}}}`, i)
		if err := c.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	awaitNoReconciles(t, o)
	last, after := reconciles(t, o)
	if last == first {
		t.Fatal("the operator did not reconcile the job after its annotation changed")
	}
	return (after - before) / time.Duration(last-first)
}

// costOfEvents returns the operator's CPU time for each of podEvents events of the pod, and the number of reconciles
// for all of them. Events that matter change a condition; the others change only a message, which the operator ignores.
func costOfEvents(t *testing.T, c client.Client, o *operator.Operator, namespace, pod string,
	matters bool) (time.Duration, uint64) {
	t.Helper()
	reconciledBefore, _ := reconciles(t, o)
	before := o.CPU(t)
	for i := range podEvents {
		patch := fmt.Sprintf(`{"status":{"message":"%d"}}`, i)
		if matters {
			patch = fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`,
				map[bool]string{true: "True", false: "False"}[i%2 == 0])
		}
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: namespace}}
		if err := c.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	reconciled, _ := reconciles(t, o)
	return (o.CPU(t) - before) / podEvents, reconciled - reconciledBefore
}
