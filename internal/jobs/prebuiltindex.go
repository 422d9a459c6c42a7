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
func (p *prebuiltIndex) set(job client.Object) {
	key := client.ObjectKeyFromObject(job)
	workload := types.NamespacedName{Namespace: job.GetNamespace(), Name: prebuiltName(job)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.named[key] == workload {
		return
	}
	p.remove(key)
	if workload.Name == "" {
		return
	}
	if p.named == nil {
		p.named, p.of = map[types.NamespacedName]types.NamespacedName{}, map[types.NamespacedName]sets.Set[types.NamespacedName]{}
	}
	p.named[key] = workload
	if p.of[workload] == nil {
		p.of[workload] = sets.New[types.NamespacedName]()
	}
	p.of[workload].Insert(key)
}

// forget removes a job that is gone.
func (p *prebuiltIndex) forget(job types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(job)
}

// remove removes the job. The caller holds the lock.
func (p *prebuiltIndex) remove(job types.NamespacedName) {
	workload, names := p.named[job]
	if !names {
		return
	}
	delete(p.named, job)
	if p.of[workload].Delete(job).Len() == 0 {
		delete(p.of, workload)
	}
}

// jobsNaming returns the jobs that name the Workload.
func (p *prebuiltIndex) jobsNaming(workload client.Object) (out []reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for job := range p.of[client.ObjectKeyFromObject(workload)] {
		out = append(out, reconcile.Request{NamespacedName: job})
	}
	return out
}
