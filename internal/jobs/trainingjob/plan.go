package trainingjob

import (
	"math"

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
	// restarting holds the workers that this plan restarts, in their previous state.
	restarting []replicas.Replica
	// cannotStart says why missing pods cannot be created, "" if they can.
	cannotStart string
	plan        jobs.Plan
}

// plan returns what has to be done for a TrainingJob, given the observed state.
func plan(settings Settings, seen jobs.Seen[*breezeml.TrainingJob]) jobs.Plan {
	l := &planner{
		settings: settings, seen: seen, job: seen.Job.DeepCopy(), now: metav1.NewTime(seen.Now).Rfc3339Copy(),
		pods: jobs.ChildrenOf[*corev1.Pod](seen.Children),
	}
	l.setCreated()
	over := outcome(l.job)
	if over == nil {
		if over = l.decide(); over != nil {
			l.end(over)
		}
	}
	switch {
	case over != nil:
		l.cleanUp()
	case l.job.Status.Stage == breezeml.StageRunning:
		l.run()
	default:
		l.plan.DeletePods(l.pods)
	}
	l.report(over)
	l.plan.Progress = l.progress(over)
	return l.plan
}

// decide moves the job to the stage and size that it should have, or returns how it has ended. If the job is to stop,
// the results of workers that ended before still count: otherwise, finished work would be run again.
func (l *planner) decide() *jobs.Outcome {
	if l.mustStop() {
		l.assessWorkers()
		if over := l.ended(); over != nil {
			return over
		}
	}
	l.advance()
	l.assessWorkers()
	return l.judge()
}

// assessWorkers determines which workers there should be, and the state of each.
func (l *planner) assessWorkers() {
	size := l.job.Status.CurrentSize
	policy := restartPolicyOf(l.job, l.lattice())
	l.roster = replicas.Observe(l.job.Name, []replicas.Group{{
		Name: worker, Count: size, Indices: replicas.KeepIndices(l.job.Name, worker, size, l.pods, l.seen.Admission.PodSets[worker].Places),
		Restart: replicas.Restart{
			OnFailure: policy != breezeml.RestartNever,
			Retry:     func(pod *corev1.Pod) bool { return isRetried(policy, pod) },
			Limit:     math.MaxInt32,
		},
	}}, l.memoryOf, l.pods)
	l.lost = l.roster.RestartDisrupted()
}

// run brings a job that may have pods closer to its size.
func (l *planner) run() {
	l.restarting = l.roster.Restart()
	l.countRestarts()
	if l.requeueStuck() {
		return
	}
	l.plan.DeletePods(l.roster.Outdated())
	l.plan.DeletePods(l.lost)
	l.updateRoundSizes()
	if l.seen.Admission.MayStart() {
		l.createServices()
		l.createPods()
		jobs.JoinGangs(l.seen, l.settings.kind(), map[string]int32{worker: sizesOf(l.job).least}, &l.plan)
	}
	l.deleteServices(func(index int32) bool { return l.roster.Get(worker, index) == nil })
}

// progress returns what the queue needs to know.
func (l *planner) progress(over *jobs.Outcome) jobs.Progress {
	p := jobs.Progress{Outcome: over, Ready: over != nil} // pods that still run after the end need not be ready
	for _, n := range l.job.Status.Restarts {
		p.Restarts += int64(n)
	}
	var live int32
	for _, pod := range l.pods {
		if !replicas.IsFinished(pod) {
			live++
		}
	}
	p.Active, p.Pods = live > 0, map[string]int32{worker: live}
	if over != nil {
		if p.Active && l.seen.Admission.HoldsQuota() {
			p.Outcome = nil // pods that still run keep their quota until they end
		}
		return p
	}
	p.Reclaimable = l.reclaimable()
	var up int32
	for i := range l.roster.Replicas {
		if r := &l.roster.Replicas[i]; r.Ready || r.Phase == replicas.Succeeded {
			up++
		}
	}
	least := sizesOf(l.job).least
	p.Ready = l.job.Status.Stage == breezeml.StageRunning && up >= least
	p.Lacking = int32(len(l.roster.Missing()))
	tooFew := p.Lacking > 0 && int32(len(l.roster.Replicas))-p.Lacking < least
	if tooFew {
		l.plan.DueBy(l.seen.NoteRefusals(&p, l.job.UID, p.Lacking))
	}
	if p.Refused == "" && (tooFew || !p.Active) {
		p.Refused = l.cannotStart // the job would hold its quota for nothing: too few workers make no round
	}
	return p
}

// reclaimable reports workers that have succeeded, which keeps the queue from growing the job. It reports no more than
// the pods that were not granted, so that no granted quota is given away: the pod of a succeeded worker may get lost,
// and is recreated then.
func (l *planner) reclaimable() map[string]int32 {
	granted := l.seen.Admission.PodSets[worker]
	n := min(l.succeeded(), granted.Asked-granted.Count)
	if l.job.Status.Stage != breezeml.StageRunning || n <= 0 {
		return nil
	}
	return map[string]int32{worker: n}
}

func (l *planner) addEvent(e jobs.Event) { l.plan.Events = append(l.plan.Events, e) }
