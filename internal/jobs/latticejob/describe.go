package latticejob

import (
	"cmp"
	"slices"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/pointers"
)

// describe returns what a LatticeJob requests of a queue. That is nothing if its VCJob or its runs queue, if its queue
// is Volcano's alone, or before Volcano is installed; if the job was queued before, it gives its quota back.
func (c controller) describe(job *lattice.LatticeJob, facts jobs.Facts) jobs.Description {
	switch {
	case hasSchedule(job):
		return jobs.Description{}
	case !c.settings.External:
		return jobs.Description{Paused: true}
	case c.waitsForVolcano(facts) || !isManagedQueue(job, facts.Queues):
		return jobs.Description{Paused: job.Status.Phase != lattice.Running} // a running job keeps its quota
	}
	d := jobs.Description{Queue: job.Spec.Queue, PriorityClass: job.Spec.PriorityClassName,
		HeldByChild: job.Status.Phase == lattice.Running}
	if job.Status.Phase == lattice.Running && len(facts.Queued) > 0 {
		// A change of the spec is ignored by now, so it must not change either what the quota of the job is for.
		d.PodSets = slices.Clone(facts.Queued)
		return d
	}
	known := c.facts(job, facts, nil)
	known.AnyService = true // the pods' requests do not depend on services
	result, err := compile.Compile(job, c.withQueuedGPUs(job, facts.Queued, known))
	switch {
	case awaitsSharedGPUs(job, err):
		return jobs.Description{Paused: true}
	case err != nil:
		return d // Plan reports the error
	case len(result.Missing) > 0 && job.Status.Phase != lattice.Running:
		return jobs.Description{Paused: true} // none of its objects could be created
	}
	for task := range pointers.To(result.VCJob.Spec.Tasks) {
		if task.Replicas == 0 {
			continue // the task has no pods
		}
		d.PodSets = append(d.PodSets,
			kueue.PodSet{Name: kueue.PodSetReference(task.Name), Count: task.Replicas, Template: task.Template})
	}
	return d
}

// isManagedQueue reports whether the queue that the job names is one of Muster's.
func isManagedQueue(job *lattice.LatticeJob, queues jobs.QueueFacts) bool {
	name := cmp.Or(job.Labels[kueue.QueueLabel], job.Spec.Queue)
	return name != "" && queues.Serves(name)
}
