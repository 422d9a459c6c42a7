package trainingjob

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// planner makes one plan for a TrainingJob: it holds the observed state and what is planned so far.
type planner struct {
	*view
	status *reporter
	plan   *jobs.Plan
	// lost holds failed pods of the roster that do not count as failures, because their nodes or places were taken away.
	lost []*corev1.Pod
	// cannotStart says why missing pods cannot be created, "" if they can.
	cannotStart string
}

func newPlanner(settings Settings, seen jobs.Seen[*breezeml.TrainingJob]) *planner {
	v, plan := &view{
		settings: settings, seen: seen, job: seen.Job.DeepCopy(), now: metav1.NewTime(seen.Now).Rfc3339Copy(),
		pods: jobs.ChildrenOf[*corev1.Pod](seen.Children),
	}, &jobs.Plan{}
	return &planner{view: v, status: &reporter{v, plan}, plan: plan}
}

// progress returns what the queue needs to know.
func (p *planner) progress(outcome *jobs.Outcome) jobs.Progress {
	progress := jobs.Progress{Ready: outcome != nil} // pods that still run after the end need not be ready
	for _, n := range p.job.Status.Restarts {
		progress.Restarts += int64(n)
	}
	var live int32
	for _, pod := range p.pods {
		if !replicas.IsFinished(pod) {
			live++
		}
	}
	progress.Active, progress.Pods = live > 0, map[string]int32{worker: live}
	if outcome != nil {
		if progress.SetOutcome(outcome, p.seen.Admission) {
			progress.RunOn = map[string]int32{worker: int32(len(p.plan.RunOn(p.pods)))}
		}
		return progress
	}
	progress.Reclaimable = p.reclaimable()
	up := pointers.Count(p.roster.Replicas,
		func(r *replicas.Replica) bool { return r.Ready || r.Phase == replicas.Succeeded })
	least := sizesOf(p.job).least
	progress.Ready = p.job.Status.Stage == breezeml.StageRunning && up >= least
	progress.Missing = int32(len(p.roster.Missing()))
	tooFew := progress.Missing > 0 && int32(len(p.roster.Replicas))-progress.Missing < least
	if tooFew {
		p.plan.DueBy(p.seen.NoteRefusals(&progress, p.job.UID, progress.Missing))
	}
	if progress.Refused == "" && (tooFew || !progress.Active) {
		progress.Refused = p.cannotStart // the job would hold its quota for nothing: too few workers make no round
	}
	return progress
}

// report fills in the status. Once the job has ended, conditions stay as they are, and counts once all pods have ended.
func (p *planner) report(outcome *jobs.Outcome) {
	before := &p.seen.Job.Status
	s := &p.job.Status
	if outcomeOf(p.seen.Job) == nil {
		p.status.setRunning(outcome)
		p.status.countWorkers()
	} else {
		p.status.countLastWorkers()
	}
	if equality.Semantic.DeepEqual(before, s) {
		return
	}
	p.plan.Status = p.job
	p.plan.StatusCanWait = !p.plan.StatusFirst && sameButCounts(before, s)
	s.ExecStatus.LastReconcileTime = p.now.DeepCopy()
}

// sameButCounts reports whether the statuses differ only in what can be derived from the pods.
func sameButCounts(a, b *breezeml.TrainingJobStatus) bool {
	one, other := a.DeepCopy(), b.DeepCopy()
	for _, s := range []*breezeml.TrainingJobStatus{one, other} {
		s.ExecStatus.ReplicaStatuses, s.RequeueTime = nil, nil
	}
	return equality.Semantic.DeepEqual(one, other)
}
