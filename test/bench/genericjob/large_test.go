//go:build bench

package genericjob

import (
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
	looks          = 50
	podEvents      = 1500
	// eventMost is what an event of a pod of the large job may cost to one of a job of 10: it is the same, but for what
	// two measurements differ by.
	eventMost = 1.3
)

// unbound has pods that nobody schedules, so that creating them is all there is to do.
const unbound = "nobody"

// TestLargeJob: a job of 1,000 replicas. How long it takes until they are there, beside the floor: the same pods, created by
// a client as fast as it can. How long a look at it takes; and what an event of one of its pods costs, beside one of a job
// of 10.
func TestLargeJob(t *testing.T) {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := makeNamespace(t, c)
	o := startOperator(t, cluster)
	var ours, floor time.Duration
	for round := range creationRounds {
		// The better of the rounds counts: what else the machine does makes the others longer, never shorter.
		plain := timeToPods(t, c, namespace, func() { createPlain(t, c, namespace, fmt.Sprintf("plain-%d", round)) })
		removePods(t, c, namespace)
		job := jobOf(namespace, fmt.Sprintf("large-%d", round), largeReplicas, time.Hour)
		job.Spec.ReplicaSpecs[0].Template.Spec.SchedulerName = unbound
		took := timeToPods(t, c, namespace, func() {
			if err := c.Create(t.Context(), job); err != nil {
				t.Fatal(err)
			}
		})
		if round == 0 || plain < floor {
			floor = plain
		}
		if round == 0 || took < ours {
			ours = took
		}
		if round < creationRounds-1 {
			if err := c.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
				t.Fatal(err)
			}
			awaitNoPods(t, c, namespace)
		}
	}
	ratio := float64(ours) / float64(floor)
	figure.Reach(t, fmt.Sprintf("creation of a %d-replica job, to the floor", largeReplicas), fmt.Sprintf("%.2f", ratio), fmt.Sprint(creationMost), ratio <= creationMost)
	figure.Note("  the job, and the floor", figure.Seconds(ours)+", "+figure.Seconds(floor))

	large := types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("large-%d", creationRounds-1)}
	rest(t, o)
	each := timeALook(t, c, o, large)
	figure.Reach(t, fmt.Sprintf("a look at a %d-replica job", largeReplicas), each.String(), reconcileMost.String(), each < reconcileMost)

	small := jobOf(namespace, "small", 10, time.Hour)
	small.Spec.ReplicaSpecs[0].Template.Spec.SchedulerName = unbound
	timeToMore(t, c, namespace, 10, func() {
		if err := c.Create(t.Context(), small); err != nil {
			t.Fatal(err)
		}
	})
	rest(t, o)
	for _, kind := range []struct {
		what    string
		matters bool
	}{{"a pod event that tells nothing new", false}, {"a pod event that does", true}} {
		few, fewLooks := costOfEvents(t, c, o, namespace, "small-worker-0", kind.matters)
		many, manyLooks := costOfEvents(t, c, o, namespace, large.Name+"-worker-0", kind.matters)
		what := kind.what + ", CPU, of a job of 10 and of 1,000"
		figure.Note(what, fmt.Sprintf("%s, %s", few, many))
		if ratio := float64(many) / float64(few); !kind.matters {
			figure.Reach(t, "  the one to the other", fmt.Sprintf("%.2f", ratio), fmt.Sprint(eventMost), ratio <= eventMost)
		}
		figure.Note(fmt.Sprintf("  looks for %d of them", podEvents), fmt.Sprintf("%d, %d", fewLooks, manyLooks))
	}
}

// createPlain creates as many pods as the job has, like its own.
func createPlain(t *testing.T, c client.Client, namespace, name string) {
	var group errgroup.Group
	group.SetLimit(50) // as many as the operator has under way
	for i := range largeReplicas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-worker-%d", name, i), Namespace: namespace}, Spec: template(time.Hour).Spec}
		pod.Spec.SchedulerName = unbound
		pod.Labels = map[string]string{"genericjob": name, "genericjob-replica": pod.Name, "muster.dev/job-uid": "x"}
		group.Go(func() error { return c.Create(t.Context(), pod) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func timeToPods(t *testing.T, c client.WithWatch, namespace string, do func()) time.Duration {
	return timeToMore(t, c, namespace, largeReplicas, do)
}

// timeToMore is how long it takes until there are so many pods more.
func timeToMore(t *testing.T, c client.WithWatch, namespace string, pods int, do func()) time.Duration {
	t.Helper()
	there := list(t, c, namespace)
	wanted := len(there.Items) + pods
	began := time.Now()
	go do()
	for len(there.Items) < wanted { // a watch may end before its time: the list has the truth
		watching := follow(t, c, namespace, there.ResourceVersion)
		for missing := wanted - len(there.Items); missing > 0; {
			event, open := <-watching.ResultChan()
			if !open {
				break
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

func follow(t *testing.T, c client.WithWatch, namespace, version string) watch.Interface {
	t.Helper()
	watching, err := c.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		t.Fatal(err)
	}
	return watching
}

func removePods(t *testing.T, c client.WithWatch, namespace string) {
	t.Helper()
	if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
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

// rest waits until the operator has looked at nothing for a while.
func rest(t *testing.T, o *operator.Operator) {
	t.Helper()
	for {
		before, _ := reconciles(t, o)
		time.Sleep(6 * time.Second) // that nothing happens can only be seen by watching for a while
		if after, _ := reconciles(t, o); after == before {
			return
		}
	}
}

// timeALook is the mean time of a look at the job that has nothing to write.
func timeALook(t *testing.T, c client.Client, o *operator.Operator, name types.NamespacedName) time.Duration {
	t.Helper()
	first, before := reconciles(t, o)
	for i := range looks {
		job := &tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: name.Name, Namespace: name.Namespace}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"bench":"%d"}}}`, i)
		if err := c.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	rest(t, o)
	last, after := reconciles(t, o)
	if last == first {
		t.Fatal("the operator did not look")
	}
	return (after - before) / time.Duration(last-first)
}

// costOfEvents is what an event of the pod costs the operator: one that it can ignore, or one that it must look at.
func costOfEvents(t *testing.T, c client.Client, o *operator.Operator, namespace, pod string, matters bool) (time.Duration, uint64) {
	t.Helper()
	looked, _ := reconciles(t, o)
	before := o.CPU(t)
	for i := range podEvents {
		patch := fmt.Sprintf(`{"status":{"message":"%d"}}`, i)
		if matters {
			patch = fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, map[bool]string{true: "True", false: "False"}[i%2 == 0])
		}
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: namespace}}
		if err := c.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	now, _ := reconciles(t, o)
	return (o.CPU(t) - before) / podEvents, now - looked
}
