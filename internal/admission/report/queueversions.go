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
func (qsw *QueueStatusWriter) Observe(changed, deleted client.Object) {
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
	qsw.mu.Lock()
	defer qsw.mu.Unlock()
	if changed == nil {
		delete(qsw.observed, key)
		return
	}
	if is := specVersionOf(o); qsw.observed[key] != is {
		qsw.observed[key] = is
		delete(qsw.wrote, key) // a changed spec is acknowledged at once; only the numbers wait for the interval
	}
}

// isCurrent reports whether the engine has the version of the queue that the cache has. If not, the watch is about to
// deliver it, and the queue will be noted again.
func (qsw *QueueStatusWriter) isCurrent(key StatusOf, seen client.Object) bool {
	qsw.mu.Lock()
	defer qsw.mu.Unlock()
	return qsw.observed[key] == specVersionOf(seen)
}
