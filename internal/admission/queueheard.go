package admission

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
)

// specVersion tells an object from what it was before, and from another of its name.
type specVersion struct {
	uid        types.UID
	generation int64
}

func specVersionOf(o client.Object) specVersion { return specVersion{o.GetUID(), o.GetGeneration()} }

// hear notes the version of a queue that the engine has taken in. The cache may be ahead of the engine, and a status that
// says it has observed a generation promises that who comes from now on is admitted by it.
func (s *queueStatusWriter) hear(n news) {
	o := n.changed
	if o == nil {
		o = n.deleted
	}
	var key statusOf
	switch q := o.(type) {
	case *kueue.ClusterQueue:
		key = statusOf{ofClusterQueue, engine.Key{Name: q.Name}}
	case *kueue.LocalQueue:
		key = statusOf{ofLocalQueue, keyOf(q)}
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.changed == nil {
		delete(s.heard, key)
		return
	}
	if is := specVersionOf(o); s.heard[key] != is {
		s.heard[key] = is
		delete(s.wrote, key) // who changed a queue is told at once; what waits is numbers
	}
}

// has reports whether the engine has the queue as it is in the cache. Else the watch is about to tell, and the queue is
// noted again.
func (s *queueStatusWriter) has(key statusOf, seen client.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard[key] == specVersionOf(seen)
}
