package watching

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// ClusterQueues keeps all ClusterQueues by name, as the facts of a job have them, from one of their events to the next:
// there may be thousands, and to list them would be most of the work of a reconcile.
type ClusterQueues struct {
	// watched is set if forget sees all events. If not, nothing is kept.
	watched bool
	mu      sync.Mutex
	known   map[string]*kueue.ClusterQueue
}

// Read returns the ClusterQueues. They are shared and must not be modified.
func (c *ClusterQueues) Read(ctx context.Context, from client.Reader) (map[string]*kueue.ClusterQueue, error) {
	c.mu.Lock() // also while listing: what is listed before an event must not be kept after it
	defer c.mu.Unlock()
	if c.known != nil {
		return c.known, nil
	}
	var list kueue.ClusterQueueList
	if err := from.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	known := ByName(list.Items)
	if c.watched {
		c.known = known
	}
	return known, nil
}

// Forget is a predicate that lets all events through. It must come first, so that the reconciles that follow from an
// event read anew.
func (c *ClusterQueues) Forget() predicate.Predicate {
	c.watched = true
	return predicate.NewPredicateFuncs(func(client.Object) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.known = nil
		return true
	})
}

// TakesOtherJobs lets an update of a ClusterQueue through if it may change which namespaces it takes jobs of. Jobs do
// not depend on the rest of its spec: a change of the quota would reconcile all that name it for nothing.
var TakesOtherJobs = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*kueue.ClusterQueue), e.ObjectNew.(*kueue.ClusterQueue)
	return !equality.Semantic.DeepEqual(before.Spec.NamespaceSelector, after.Spec.NamespaceSelector)
}}

// ByName maps the items of a list by their names.
func ByName[O any, P interface {
	*O
	client.Object
}](items []O) map[string]*O {
	out := make(map[string]*O, len(items))
	for i := range items {
		out[P(&items[i]).GetName()] = &items[i]
	}
	return out
}
