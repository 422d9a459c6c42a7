package trainingjob

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// planner makes one plan for a TrainingJob: it holds the observed state and what is planned so far.
type planner struct {
	settings Settings
	seen     jobs.Seen[*breezeml.TrainingJob]
	// job is a copy of the job whose status is brought up to date.
	job *breezeml.TrainingJob
	// now is the time with the precision that the API stores.
	now  metav1.Time
	pods []*corev1.Pod
	// roster has as many workers as the job is to run with.
	roster *replicas.Roster
	// lost holds failed pods of the roster that do not count as failures, because their nodes or places were taken
	// away.
	lost []*corev1.Pod
	// restarting holds the workers that this plan restarts, in their previous state. waiting holds those whose restart is
	// delayed.
	restarting, waiting []replicas.Replica
	// cannotStart says why missing pods cannot be created, "" if they can.
	cannotStart string
	plan        jobs.Plan
}

// plan returns what has to be done for a TrainingJob, given the observed state.
func plan(settings Settings, seen jobs.Seen[*breezeml.TrainingJob]) jobs.Plan {
	p := &planner{
		settings: settings, seen: seen, job: seen.Job.DeepCopy(), now: metav1.NewTime(seen.Now).Rfc3339Copy(),
		pods: jobs.ChildrenOf[*corev1.Pod](seen.Children),
	}
	p.setCreated()
	over := outcome(p.job)
	if over == nil {
		if over = p.decide(); over != nil {
			p.end(over)
		}
	}
	switch {
	case over != nil:
		p.cleanUp(over)
	case p.job.Status.Stage == breezeml.StageRunning:
		p.run()
	default:
		p.plan.DeletePods(p.pods)
	}
	p.report(over)
	p.plan.Progress = p.progress(over)
	return p.plan
}

// decide moves the job to the stage and size that it should have, or returns how it has ended. If the job is to stop,
// the results of workers that ended before still count: otherwise, finished work would be run again.
func (p *planner) decide() *jobs.Outcome {
	if p.mustStop() {
		p.assessWorkers()
		if over := p.ended(); over != nil {
			return over
		}
	}
	p.advance()
	p.assessWorkers()
	p.goOnWithoutLost()
	return p.judge()
}

// assessWorkers determines which workers there should be, and the state of each.
func (p *planner) assessWorkers() {
	size := max(0, min(p.job.Status.CurrentSize, breezeml.MostWorkers)) // each worker takes memory in a plan
	p.observeWorkers(replicas.KeepIndices(p.job.Name, worker, size, p.pods, p.seen.Admission.PodSets[worker].Places))
}

// observeWorkers determines the state of the workers with these indices.
func (p *planner) observeWorkers(indices []int32) {
	policy := restartPolicyOf(p.job, p.lattice())
	p.roster = replicas.Observe(p.job.Name, []replicas.Group{{
		Name: worker, Count: int32(len(indices)), Indices: indices,
		Restart: replicas.Restart{
			OnFailure: true,
			Retry:     func(pod *corev1.Pod) bool { return isRetried(policy, pod) || p.isReplaced(pod) },
			Limit:     math.MaxInt32,
		},
	}}, p.memoryOf, p.pods)
	var next time.Time
	p.lost, next = p.roster.RestartDisrupted(p.seen.Now)
	p.plan.DueBy(next)
}

// run brings a job that may have pods closer to its size.
func (p *planner) run() {
	p.restart()
	if p.requeueStuck() {
		return
	}
	p.plan.DeletePods(p.roster.Outdated())
	p.plan.DeletePods(p.lost)
	p.updateRoundSizes()
	if p.seen.Admission.MayStart() {
		p.plan.CreateServices(p.roster, p.seen.Children, p.newService)
		p.plan.CreateReplicas(p.roster, p.seen.Admission, p.newPod)
		jobs.JoinGangs(p.seen, p.settings.kind(), map[string]int32{worker: sizesOf(p.job).least}, &p.plan)
	}
	p.deleteServices(func(index int32) bool { return p.roster.Get(worker, index) == nil })
}

// progress returns what the queue needs to know.
func (p *planner) progress(over *jobs.Outcome) jobs.Progress {
	progress := jobs.Progress{Ready: over != nil} // pods that still run after the end need not be ready
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
	if over != nil {
		if progress.End(over, p.seen.Admission) {
			progress.RunOn = map[string]int32{worker: int32(len(p.plan.RunOn(p.pods)))}
		}
		return progress
	}
	progress.Reclaimable = p.reclaimable()
	up := replicas.Count(p.roster.Replicas, func(r *replicas.Replica) bool { return r.Ready || r.Phase == replicas.Succeeded })
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

// reclaimable reports workers that have succeeded, which keeps the queue from growing the job. It reports no more than
// the pods that were not granted, so that no granted quota is given away: the pod of a succeeded worker may get lost,
// and is recreated then.
func (p *planner) reclaimable() map[string]int32 {
	granted := p.seen.Admission.PodSets[worker]
	n := min(p.succeeded(), granted.Asked-granted.Count)
	if p.job.Status.Stage != breezeml.StageRunning || n <= 0 {
		return nil
	}
	return map[string]int32{worker: n}
}

func (p *planner) addEvent(e jobs.Event) { p.plan.Events = append(p.plan.Events, e) }
