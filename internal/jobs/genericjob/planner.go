package genericjob

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// planner makes one plan for a GenericJob: it holds the observed state and what is planned so far.
type planner struct {
	*view
	plan *jobs.Plan
}

func newPlanner(seen jobs.Seen[*tensorstack.GenericJob]) *planner {
	job := new(tensorstack.GenericJob)
	*job = *seen.Job
	v, plan := &view{seen: seen, job: job,
		specs: make(map[string]*tensorstack.ReplicaSpec, len(job.Spec.ReplicaSpecs))}, &jobs.Plan{}
	for spec := range pointers.To(job.Spec.ReplicaSpecs) {
		v.specs[spec.Type] = spec
	}
	pods := jobs.ChildrenOf[*corev1.Pod](seen.Children)
	v.sizes = sizesOf(job, seen.Admission, pods)
	v.roster = replicas.Observe(job.Name, groups(job, v.sizes), recordsOf(&job.Status), pods)
	if outcomeOf(job) == nil {
		lost, next := v.roster.RestartDisrupted(seen.Now)
		v.lost = lost
		plan.DueBy(next)
	}
	if r := v.roster.First(replicas.In(replicas.Failed)); r != nil {
		before := *r // a copy, as a restart changes the replica
		v.failed = &before
	}
	return &planner{v, plan}
}

// progress returns what the queue needs to know.
func (p *planner) progress(outcome *jobs.Outcome) jobs.Progress {
	progress := jobs.Progress{
		Active:      p.roster.Active(),
		Ready:       outcome != nil || p.ready(), // pods that run on after the end are not waited for
		Reclaimable: p.roster.FinalCounts(),
	}
	p.elasticProgress(&progress, outcome)
	if outcome != nil && progress.SetOutcome(outcome, p.seen.Admission) {
		progress.RunOn = p.runOn(progress.Pods)
	}
	if missing := len(p.roster.Missing()); outcome == nil && missing > 0 {
		p.plan.DueBy(p.seen.NoteRefusals(&progress, p.job.UID, int32(missing)))
	}
	return progress
}

// elasticProgress reports what the queue needs to resize elastic types. An elastic type is ready with its minimum. Once
// one of its replicas has succeeded for good it wants only as many pods as are left, and the queue resizes it to that.
//
// A pod set that has given quota back otherwise is not resized any more. So a type reports its succeeded replicas as
// reclaimable only once fewer than its minimum are left: of 4 replicas, at least 2, when 3 have succeeded.
func (v *view) elasticProgress(p *jobs.Progress, outcome *jobs.Outcome) {
	for spec := range pointers.To(v.job.Spec.ReplicaSpecs) {
		granted := v.seen.Admission.PodSets[spec.Type]
		b := granted.Bounds(boundsOf(spec))
		if !b.Elastic {
			continue
		}
		delete(p.Reclaimable, spec.Type)
		if n := v.succeeded(spec); n > 0 && outcome == nil { // one that has ended wants no more anyway
			needed, asked, least := v.sizes[spec.Type]-n, b.Most, b.Least
			if v.seen.Admission.Grant == jobs.Admitted && granted.Template != nil {
				asked, least = granted.Asked, jobs.BoundsOf(granted.Template.Annotations, granted.Asked).Least
			}
			p.Needed = map[string]int32{spec.Type: needed}
			if needed < least {
				p.Reclaimable[spec.Type] = asked - needed
			}
		}
		if p.Pods == nil {
			p.Pods = map[string]int32{}
		}
		p.Pods[spec.Type] = v.roster.InUse(spec.Type)
	}
}

// runOn counts the pods of the types that run on after the end of the job.
func (p *planner) runOn(types map[string]int32) map[string]int32 {
	out := map[string]int32{}
	for _, pod := range p.plan.RunOn(jobs.ChildrenOf[*corev1.Pod](p.seen.Children)) {
		for kind := range types {
			if _, its := replicas.IndexOf(p.job.Name, kind, pod.Name); its {
				out[kind]++
			}
		}
	}
	return out
}

// report fills in the status. A final status is kept.
func (p *planner) report(outcome *jobs.Outcome) {
	had := outcomeOf(p.job) != nil
	p.job.Status.Tasks, p.job.Status.Aggregate = p.tasks(outcome != nil)
	// A pod whose container ends again and again is running, and not ready.
	p.job.Status.Ready = ptr.To(pointers.Count(p.roster.Replicas, func(r *replicas.Replica) bool {
		return r.Ready && r.Phase == replicas.Running
	}))
	if !had {
		p.job.Status.Phase = p.phase(outcome, p.roster.All(started))
		resuming := p.job.Status.Phase == tensorstack.JobPhaseResuming // pods that still run are from before the pause
		p.setConditions(p.conditions(outcome, !resuming && p.roster.All(replicas.In(replicas.Running, replicas.Succeeded))))
	}
	if equalStatus(&p.seen.Job.Status, &p.job.Status) {
		return
	}
	p.plan.Status = p.job
	p.plan.StatusCanWait = !p.plan.StatusFirst && p.isDerivedFromPods()
}
