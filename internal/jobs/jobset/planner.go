package jobset

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// planner makes one plan for a JobSet: it holds the observed state, what is planned so far, and a part for each thing
// that several policies ask about.
type planner struct {
	*view
	sizes   *sizes
	layouts *layouts
	gangs   *gangs
	status  *reporter
	plan    *jobs.Plan
	// moved holds the names of Jobs that the plan stops because they were given other nodes.
	moved map[string]bool
}

func newPlanner(seen jobs.Seen[*jobset.JobSet]) *planner {
	js, plan := seen.Job.DeepCopy(), &jobs.Plan{}
	v := &view{seen: seen, js: js, children: sortChildren(jobs.ChildrenOf[*batchv1.Job](seen.Children), js)}
	p := &planner{view: v, plan: plan, moved: map[string]bool{}, sizes: &sizes{view: v}, status: &reporter{v, plan},
		layouts: &layouts{view: v, byName: map[string]rankLayout{}}}
	p.gangs = &gangs{view: v, sizes: p.sizes, layouts: p.layouts, joining: map[string]bool{}}
	for _, group := range jobs.ChildrenOf[*schedulingv1beta1.PodGroup](seen.Children) {
		p.gangs.podGroups = append(p.gangs.podGroups, group)
	}
	return p
}

// progress returns what the queue needs to know.
func (p *planner) progress() jobs.Progress {
	ready, stage := p.readiness()
	progress := jobs.Progress{Ready: ready, Stage: stage, Reclaimable: p.sizes.reclaimable(), Pods: p.sizes.podsInUse(),
		Outcome: outcomeOf(p.js)}
	if p.noteRefusals(&progress); progress.Refused == "" && progress.Outcome == nil &&
		!slices.ContainsFunc(p.children.active, isRunning) {
		progress.Refused = p.cannotStart()
	}
	for _, job := range p.children.all() {
		progress.Active = progress.Active || !jobs.HasNoPods(job)
	}
	progress.Active = progress.Active || p.awaitsRestart()
	requeue, events := p.sizes.awaitQuota(progress.Active)
	progress.Requeue = requeue
	p.plan.AddEvents(events...)
	return progress
}

// noteRefusals reports in the progress why the API server refuses pods of a running Job with missing pods, or a
// PodGroup without which no pods are created. If the refusals have not lasted long enough yet, the JobSet is planned
// again when they have.
func (p *planner) noteRefusals(progress *jobs.Progress) {
	var owners []types.UID
	var pods int32
	if p.gangs.missing {
		owners, pods = append(owners, p.js.UID), 1
	}
	for _, job := range p.children.active {
		if missing := jobs.PodsLeft(job) - job.Status.Active; missing > 0 && !suspended(job) {
			owners, pods = append(owners, job.UID), pods+missing
		}
	}
	for _, uid := range owners {
		due := p.seen.NoteRefusals(progress, uid, pods)
		if progress.Refused != "" {
			return
		}
		p.plan.DueBy(due)
	}
}

// justQueued reports whether the JobSet has just been queued. Most JobSets are admitted at once, so that a status that
// says they wait would be a wasted write.
func (p *planner) justQueued() bool {
	return p.seen.Admission.Grant == jobs.Waiting && len(p.seen.Job.Status.ReplicatedJobsStatus) == 0 &&
		len(p.seen.Children) == 0 && !hasOutcome(p.js) &&
		!meta.IsStatusConditionTrue(p.js.Status.Conditions, muster.CannotStartCondition)
}
