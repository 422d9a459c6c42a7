package jobs

import (
	"context"
	"slices"
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

// TestControllersShareAWatch: each of two controllers hears, once and by its own queue, what its predicate lets through.
func TestControllersShareAWatch(t *testing.T) {
	ctx := t.Context()
	informers := &informertest.FakeInformers{Scheme: testcluster.Scheme()}
	watches := newSharedWatches(informers)
	asked := 0
	names := func(prefix string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			asked++
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: prefix + o.GetName()}}}
		})
	}
	join := func(of handler.EventHandler, only ...predicate.Predicate) requests {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		t.Cleanup(queue.ShutDown)
		s := watches.source(&corev1.Pod{}, of, only...)
		if err := s.Start(ctx, queue); err != nil {
			t.Fatal(err)
		}
		if err := s.(source.SyncingSource).WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		return queue
	}
	all := join(names("all/"))
	few := join(names("few/"), predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == "a" }),
		predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})

	informer, err := informers.FakeInformerFor(ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	pod := func(name string) *corev1.Pod { p := &corev1.Pod{}; p.Name = name; return p }
	expect := func(what string, times int, ofAll, ofFew []string) {
		t.Helper()
		if asked != times {
			t.Errorf("%s: handlers were asked %d times, not %d", what, asked, times)
		}
		if got := drained(all); !slices.Equal(got, ofAll) {
			t.Errorf("%s: who hears all heard %v, not %v", what, got, ofAll)
		}
		if got := drained(few); !slices.Equal(got, ofFew) {
			t.Errorf("%s: who hears little heard %v, not %v", what, got, ofFew)
		}
		asked = 0
	}
	informer.Add(pod("a"))
	expect("a came", 2, []string{"all/a"}, []string{"few/a"})
	informer.Add(pod("b"))
	expect("b came", 1, []string{"all/b"}, nil)
	informer.Update(pod("a"), pod("a"))
	expect("a changed", 4, []string{"all/a"}, []string{"few/a"}) // the old one and the new one
	informer.Delete(pod("a"))
	expect("a went", 1, []string{"all/a"}, nil)
}

// drained is what waits in the queue.
func drained(queue requests) (out []string) {
	for queue.Len() > 0 {
		r, _ := queue.Get()
		queue.Done(r)
		out = append(out, r.Name)
	}
	return out
}
