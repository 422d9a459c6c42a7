package vcjob

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// planner makes one plan for a VCJob: it holds the observed state, what is planned so far, and a part for each thing
// that several policies ask about.
type planner struct {
	*view
	sizes    *sizes
	objects  *objects
	policies *policies
	status   *reporter
	plan     *jobs.Plan
	// createsPods is set if the plan creates pods.
	createsPods bool
}

func newPlanner(seen jobs.Seen[*volcano.Job]) *planner {
	job := within(seen.Job.DeepCopy())
	v, plan := &view{seen: seen, job: job, tasks: tasksOf(job), records: readPodRecords(&job.Status)}, &jobs.Plan{}
	v.observe()
	p := &planner{view: v, plan: plan, sizes: &sizes{v}, objects: &objects{view: v, plan: plan}}
	p.policies = &policies{view: v, plan: plan, delayed: map[string]bool{}}
	p.status = &reporter{view: v, plan: plan, sizes: p.sizes, objects: p.objects, policies: p.policies}
	return p
}

// progress returns what the queue needs to know.
func (p *planner) progress() jobs.Progress {
	ready, stage := p.sizes.readiness()
	out := jobs.Progress{Active: p.roster.Active(), Ready: ready, Stage: stage, Reclaimable: p.sizes.reclaimable(),
		Restarts: int64(p.job.Status.RetryCount)}
	if i := p.sizes.resizableTask(); i >= 0 {
		name := nameOf(p.job, i)
		out.Pods = map[string]int32{name: p.roster.InUse(name)}
	}
	if hasOutcome(p.job) {
		state := &p.job.Status.State
		outcome := &jobs.Outcome{Succeeded: state.Phase == volcano.Completed, Message: state.Message}
		if out.SetOutcome(outcome, p.seen.Admission) {
			out.Ready = true // pods that run on are not waited for
		}
		return out
	}
	for name := range out.Pods {
		out.Needed = map[string]int32{name: p.sizes.needed(name)}
	}
	if missing := len(p.roster.Missing()); missing > 0 {
		p.plan.DueBy(p.seen.NoteRefusals(&out, p.job.UID, int32(missing)))
	}
	return out
}

// report fills in the status. A final status is kept.
func (p *planner) report() {
	status := &p.job.Status
	status.MinAvailable = minAvailable(p.job)
	p.status.countPods()
	if !hasOutcome(p.seen.Job) {
		mayRun := p.seen.Admission.MayRun() && !stopped(p.job)
		p.status.recordPods(mayRun)
		recordEvictions(status, p.records.evicted, p.roster, mayRun)
	}
	p.objects.record()
	if equality.Semantic.DeepEqual(&p.seen.Job.Status, status) {
		if p.createsPods {
			p.plan.DueIfDone = p.seen.Now.Add(countsDelay) // no event follows their creation
		}
		return
	}
	p.plan.Status = p.job
	p.plan.StatusYields = p.isInitial()
	p.plan.StatusCanWait = !p.plan.StatusFirst && (p.isDerivedFromPods() || p.plan.StatusYields)
}

// countsDelay is how long a status write is delayed if only the counts of pods changed.
const countsDelay = time.Second
