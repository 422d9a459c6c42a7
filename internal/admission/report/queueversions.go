package report

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
)

// specVersion identifies a version of an object's spec, even if the object is deleted and created again.
type specVersion struct {
	uid        types.UID
	generation int64
}

func specVersionOf(o client.Object) specVersion { return specVersion{o.GetUID(), o.GetGeneration()} }

// Observe records the version of a queue that the engine now has. The cache may be ahead of the engine, and a status
// with an observedGeneration promises that workloads submitted from now on are admitted by that spec.
// One of changed and deleted is nil.
func (s *QueueStatusWriter) Observe(changed, deleted client.Object) {
	o := changed
	if o == nil {
		o = deleted
	}
	var key StatusOf
	switch q := o.(type) {
	case *kueue.ClusterQueue:
		key = StatusOf{OfClusterQueue, engine.Key{Name: q.Name}}
	case *kueue.LocalQueue:
		key = StatusOf{OfLocalQueue, translate.KeyOf(q)}
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if changed == nil {
		delete(s.observed, key)
		return
	}
	if is := specVersionOf(o); s.observed[key] != is {
		s.observed[key] = is
		delete(s.wrote, key) // a changed spec is acknowledged at once; only the numbers wait for the interval
	}
}

// isCurrent reports whether the engine has the version of the queue that the cache has. If not, the watch is about to
// deliver it, and the queue will be noted again.
func (s *QueueStatusWriter) isCurrent(key StatusOf, seen client.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.observed[key] == specVersionOf(seen)
}
