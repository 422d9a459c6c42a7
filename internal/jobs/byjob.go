package jobs

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// byJob remembers a value for each job of an API. It is lost when the process ends. The zero value is ready for use.
type byJob[V any] struct {
	mu sync.Mutex
	of map[types.NamespacedName]ofJob[V]
}

// ofJob is the value of the job with this UID.
type ofJob[V any] struct {
	uid   types.UID
	value V
}

// get returns the value of the job; the zero value if there is none, or that of an earlier job of the same name.
func (b *byJob[V]) get(job client.Object) (value V) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.of[client.ObjectKeyFromObject(job)]; known.uid == job.GetUID() {
		return known.value
	}
	return value
}

// set remembers the value of the job. The zero value takes no memory.
func (b *byJob[V]) set(job client.Object, value V) {
	key := client.ObjectKeyFromObject(job)
	if reflect.ValueOf(&value).Elem().IsZero() {
		b.forget(key)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[types.NamespacedName]ofJob[V]{}
	}
	b.of[key] = ofJob[V]{job.GetUID(), value}
}

// forget drops the value of the job of this name.
func (b *byJob[V]) forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, key)
}
