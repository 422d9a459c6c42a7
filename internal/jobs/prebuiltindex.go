package jobs

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// prebuiltIndex indexes the jobs of an API that name a Workload made by someone else. Every Workload
// is looked up here, and few jobs name one. The zero value is ready for use.
type prebuiltIndex struct {
	mu sync.Mutex
	// named holds the Workload of each job, of the jobs of each Workload.
	named map[types.NamespacedName]types.NamespacedName
	of    map[types.NamespacedName]sets.Set[types.NamespacedName]
}

// set records which Workload the job names. It is called before that Workload is read, so that an event for it that
// comes later finds the job.
func (n *prebuiltIndex) set(job client.Object) {
	key := client.ObjectKeyFromObject(job)
	workload := types.NamespacedName{Namespace: job.GetNamespace(), Name: prebuiltName(job)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.named[key] == workload {
		return
	}
	n.remove(key)
	if workload.Name == "" {
		return
	}
	if n.named == nil {
		n.named, n.of = map[types.NamespacedName]types.NamespacedName{}, map[types.NamespacedName]sets.Set[types.NamespacedName]{}
	}
	n.named[key] = workload
	if n.of[workload] == nil {
		n.of[workload] = sets.New[types.NamespacedName]()
	}
	n.of[workload].Insert(key)
}

// forget removes a job that is gone.
func (n *prebuiltIndex) forget(job types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.remove(job)
}

// remove removes the job. The caller holds the lock.
func (n *prebuiltIndex) remove(job types.NamespacedName) {
	workload, names := n.named[job]
	if !names {
		return
	}
	delete(n.named, job)
	if n.of[workload].Delete(job).Len() == 0 {
		delete(n.of, workload)
	}
}

// jobsNaming returns the jobs that name the Workload.
func (n *prebuiltIndex) jobsNaming(workload client.Object) (out []reconcile.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for job := range n.of[client.ObjectKeyFromObject(workload)] {
		out = append(out, reconcile.Request{NamespacedName: job})
	}
	return out
}
