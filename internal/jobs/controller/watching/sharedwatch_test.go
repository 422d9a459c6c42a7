package watching

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/musterhq/muster/internal/testcluster"
)

// TestControllersShareAWatch checks that each of two controllers receives, once and in its own queue, the events that
// its predicates accept.
func TestControllersShareAWatch(t *testing.T) {
	ctx := t.Context()
	informers := &informertest.FakeInformers{Scheme: testcluster.Scheme()}
	watches := NewSharedWatches(informers)
	calls := 0
	names := func(prefix string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			calls++
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: prefix + o.GetName()}}}
		})
	}
	informer, err := informers.FakeInformerFor(ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	all := watches.Source(&corev1.Pod{}, names("all/"))
	few := watches.Source(&corev1.Pod{}, names("few/"),
		predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == "a" }),
		predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})
	ofAll, ofFew := start(t, all), start(t, few)
	for _, s := range []source.Source{all, few} {
		if err := s.(source.SyncingSource).WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
	}

	pod := func(name string) *corev1.Pod { p := &corev1.Pod{}; p.Name = name; return p }
	expect := func(what string, times int, wantAll, wantFew []string) {
		t.Helper()
		if calls != times {
			t.Errorf("%s: handlers were called %d times, want %d", what, calls, times)
		}
		if got := drained(ofAll); !slices.Equal(got, wantAll) {
			t.Errorf("%s: the controller without predicates received %v, want %v", what, got, wantAll)
		}
		if got := drained(ofFew); !slices.Equal(got, wantFew) {
			t.Errorf("%s: the controller with predicates received %v, want %v", what, got, wantFew)
		}
		calls = 0
	}
	informer.Add(pod("a"))
	expect("pod a created", 2, []string{"all/a"}, []string{"few/a"})
	informer.Add(pod("b"))
	expect("pod b created", 1, []string{"all/b"}, nil)
	informer.Update(pod("a"), pod("a"))
	// handlers are called for the old object and the new one
	expect("pod a updated", 4, []string{"all/a"}, []string{"few/a"})
	informer.Delete(pod("a"))
	expect("pod a deleted", 1, []string{"all/a"}, nil)
}

// TestEventsAreDeliveredOnceAllControllersHaveStarted, because the initial list is delivered only once.
func TestEventsAreDeliveredOnceAllControllersHaveStarted(t *testing.T) {
	ctx := t.Context()
	informers := &informertest.FakeInformers{Scheme: testcluster.Scheme()}
	watches := NewSharedWatches(informers)
	informer, err := informers.FakeInformerFor(ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	one, two := watches.Source(&corev1.Pod{}, &handler.EnqueueRequestForObject{}),
		watches.Source(&corev1.Pod{}, &handler.EnqueueRequestForObject{})
	first := start(t, one)
	informer.Add(&corev1.Pod{}) // not delivered yet
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := one.(source.SyncingSource).WaitForSync(canceled); err == nil {
		t.Error("the first controller's source is synced before the second controller has started")
	}
	if got := drained(first); len(got) > 0 {
		t.Errorf("the first controller received %v before the second has started", got)
	}
	second := start(t, two)
	if err := two.(source.SyncingSource).WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	pod.Name = "pod"
	informer.Add(pod)
	for _, queue := range []Queue{first, second} {
		if got := drained(queue); !slices.Equal(got, []string{"pod"}) {
			t.Errorf("a controller received %v, want pod", got)
		}
	}
	if got := fmt.Sprint(one); !strings.Contains(got, "Pod") {
		t.Errorf("the source's name is %s, want one with its kind", got)
	}
}

// start starts the source as a controller would, and returns the queue that its events are delivered to.
func start(t *testing.T, s source.Source) Queue {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := s.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return queue
}

// drained empties the queue and returns the names of its requests.
func drained(queue Queue) (out []string) {
	for queue.Len() > 0 {
		r, _ := queue.Get()
		queue.Done(r)
		out = append(out, r.Name)
	}
	return out
}
