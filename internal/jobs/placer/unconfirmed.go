package placer

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/pointers"
)

// unconfirmed holds the pods for which a patch was sent but not answered. As long as the cache shows the gate of the
// pod, it is unknown whether the pod has its place. Answered writes need not be kept, since the client reads its own
// writes. The zero value is empty.
type unconfirmed struct {
	mu         sync.Mutex
	byWorkload map[client.ObjectKey]sets.Set[types.UID]
}

// add adds a pod.
func (u *unconfirmed) add(workload client.ObjectKey, pod types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byWorkload == nil {
		u.byWorkload = map[client.ObjectKey]sets.Set[types.UID]{}
	}
	if u.byWorkload[workload] == nil {
		u.byWorkload[workload] = sets.New[types.UID]()
	}
	u.byWorkload[workload].Insert(pod)
}

// confirm removes a pod after the API server has answered.
func (u *unconfirmed) confirm(workload client.ObjectKey, pod types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if pods := u.byWorkload[workload]; pods.Delete(pod).Len() == 0 {
		delete(u.byWorkload, workload)
	}
}

// keep forgets the pods of the Workload but for the ones that are still gated in the cache, and reports whether there
// are any.
func (u *unconfirmed) keep(workload client.ObjectKey, cached []corev1.Pod) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	pods := u.byWorkload[workload]
	if pods.Len() == 0 {
		return false
	}
	left := sets.New[types.UID]()
	for pod := range pointers.To(cached) {
		if pods.Has(pod.UID) && gated(pod) {
			left.Insert(pod.UID)
		}
	}
	u.byWorkload[workload] = left
	if left.Len() == 0 {
		delete(u.byWorkload, workload)
	}
	return left.Len() > 0
}

// forget removes a Workload.
func (u *unconfirmed) forget(workload client.ObjectKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byWorkload, workload)
}
