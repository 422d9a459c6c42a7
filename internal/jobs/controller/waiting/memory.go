package waiting

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory remembers a value for each job of an API. It is lost when the process ends. The zero value is ready for use.
type Memory[V any] struct {
	mu sync.Mutex
	of map[types.NamespacedName]ofJob[V]
}

// ofJob is the value of the job with this UID.
type ofJob[V any] struct {
	uid   types.UID
	value V
}

// Get returns the value of the job; the zero value if there is none, or that of an earlier job of the same name.
func (m *Memory[V]) Get(job client.Object) (value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.of[client.ObjectKeyFromObject(job)]; known.uid == job.GetUID() {
		return known.value
	}
	return value
}

// Set remembers the value of the job. The zero value takes no memory.
func (m *Memory[V]) Set(job client.Object, value V) {
	key := client.ObjectKeyFromObject(job)
	if reflect.ValueOf(&value).Elem().IsZero() {
		m.Forget(key)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName]ofJob[V]{}
	}
	m.of[key] = ofJob[V]{job.GetUID(), value}
}

// Forget drops the value of the job of this name.
func (m *Memory[V]) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, key)
}
