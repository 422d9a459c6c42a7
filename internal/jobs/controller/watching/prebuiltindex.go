package watching

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/musterhq/muster/internal/jobs"
)

// PrebuiltIndex indexes the jobs of an API that name a Workload made by someone else. Every Workload
// is looked up here, and few jobs name one. The zero value is ready for use.
type PrebuiltIndex struct {
	mu sync.Mutex
	// named holds the Workload of each job, of the jobs of each Workload.
	named map[types.NamespacedName]types.NamespacedName
	of    map[types.NamespacedName]sets.Set[types.NamespacedName]
}

// Set records which Workload the job names. It is called before that Workload is read, so that an event for it that
// comes later finds the job.
func (p *PrebuiltIndex) Set(job client.Object) {
	key := client.ObjectKeyFromObject(job)
	workload := types.NamespacedName{Namespace: job.GetNamespace(), Name: jobs.PrebuiltName(job)}
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
		p.named, p.of = map[types.NamespacedName]types.NamespacedName{},
			map[types.NamespacedName]sets.Set[types.NamespacedName]{}
	}
	p.named[key] = workload
	if p.of[workload] == nil {
		p.of[workload] = sets.New[types.NamespacedName]()
	}
	p.of[workload].Insert(key)
}

// Forget removes a job that is gone.
func (p *PrebuiltIndex) Forget(job types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(job)
}

// remove removes the job. The caller holds the lock.
func (p *PrebuiltIndex) remove(job types.NamespacedName) {
	workload, names := p.named[job]
	if !names {
		return
	}
	delete(p.named, job)
	if p.of[workload].Delete(job).Len() == 0 {
		delete(p.of, workload)
	}
}

// JobsNaming returns the jobs that name the Workload.
func (p *PrebuiltIndex) JobsNaming(workload client.Object) (out []reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for job := range p.of[client.ObjectKeyFromObject(workload)] {
		out = append(out, reconcile.Request{NamespacedName: job})
	}
	return out
}
