package genericjob

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// report fills in the status. A final status is kept.
func (pl *planner) report(over *jobs.Outcome) {
	had := outcome(pl.job) != nil
	pl.job.Status.Tasks, pl.job.Status.Aggregate = pl.tasks(over != nil)
	// A pod whose container ends again and again is running, and not ready.
	pl.job.Status.Ready = ptr.To(replicas.Count(pl.roster.Replicas, func(r *replicas.Replica) bool {
		return r.Ready && r.Phase == replicas.Running
	}))
	if !had {
		pl.job.Status.Phase = pl.phase(over, pl.roster.All(started))
		resuming := pl.job.Status.Phase == tensorstack.JobPhaseResuming // pods that still run are from before the pause
		pl.setConditions(pl.conditions(over, !resuming && pl.roster.All(isHealthy)))
	}
	if equalStatus(&pl.seen.Job.Status, &pl.job.Status) {
		return
	}
	pl.plan.Status = pl.job
	pl.plan.StatusCanWait = !pl.plan.StatusFirst && pl.isDerivedFromPods()
}

// phase returns the phase of the job.
func (pl *planner) phase(over *jobs.Outcome, started bool) tensorstack.JobPhase {
	before := pl.seen.Job.Status.Phase
	resumes := before == tensorstack.JobPhasePaused || before == tensorstack.JobPhaseResuming
	switch {
	case over != nil && over.Succeeded:
		return tensorstack.JobPhaseSucceeded
	case over != nil:
		return tensorstack.JobPhaseFailed
	case paused(pl.job):
		return tensorstack.JobPhasePaused
	case !pl.roster.All(func(r *replicas.Replica) bool { return r.Phase != replicas.Unknown }):
		return tensorstack.JobPhaseUnknown
	case started && !(resumes && !pl.roster.All(notTerminating)): // pods from before the pause are terminating
		return tensorstack.JobPhaseRunning
	case resumes:
		return tensorstack.JobPhaseResuming
	case (before == tensorstack.JobPhaseRunning || before == tensorstack.JobPhaseUnknown) && pl.seen.Admission.MayRun():
		return tensorstack.JobPhaseRunning // replicas may restart
	}
	return tensorstack.JobPhasePending
}

// tasks returns the status of all replicas, and their counts.
func (pl *planner) tasks(over bool) ([]tensorstack.Tasks, *tensorstack.Aggregate) {
	tasks := make([]tensorstack.Tasks, 0, len(pl.job.Spec.ReplicaSpecs))
	counts := &tensorstack.Aggregate{}
	at := 0
	for i := range pl.job.Spec.ReplicaSpecs {
		spec := &pl.job.Spec.ReplicaSpecs[i]
		task := tensorstack.Tasks{Type: spec.Type, Replicas: make([]tensorstack.ReplicaStatus, 0, pl.sizes[spec.Type])}
		old := taskOf(&pl.job.Status, spec.Type)
		for range pl.sizes[spec.Type] {
			r := &pl.roster.Replicas[at]
			at++
			status := pl.replica(r, old, over)
			add(counts, status.Phase)
			task.RestartCount += status.RestartCount
			task.Replicas = append(task.Replicas, status)
		}
		tasks = append(tasks, task)
	}
	fitContainers(&pl.job.Spec, tasks)
	return tasks, counts
}

// replica returns the status of a replica. The result of its last pod is kept when the pod is gone.
func (pl *planner) replica(r *replicas.Replica, old *tensorstack.Tasks, over bool) tensorstack.ReplicaStatus {
	out := tensorstack.ReplicaStatus{Name: r.Name, Phase: tensorstack.ReplicaPhase(r.Phase), RestartCount: r.Restarts, SettledRestarts: r.Settled}
	if uid := r.UID(); uid != "" {
		out.UID, out.Containers = uid, containersOf(r)
		return out
	}
	if old != nil && int(r.Index) < len(old.Replicas) {
		before := &old.Replicas[r.Index]
		if before.RestartCount == r.Restarts {
			out.UID, out.Containers = before.UID, before.Containers
		}
	}
	if r.Pod == nil {
		out.Containers = stopped(out.Containers)
	}
	switch {
	case r.Pod != nil: // an outdated pod that is terminating
	case over, paused(pl.job) && !r.Phase.Finished():
		out.Phase = tensorstack.ReplicaDeleted
	}
	return out
}

func add(counts *tensorstack.Aggregate, phase tensorstack.ReplicaPhase) {
	switch phase {
	case tensorstack.ReplicaCreating:
		counts.Creating++
	case tensorstack.ReplicaPending:
		counts.Pending++
	case tensorstack.ReplicaRunning:
		counts.Running++
	case tensorstack.ReplicaSucceeded:
		counts.Succeeded++
	case tensorstack.ReplicaFailed:
		counts.Failed++
	case tensorstack.ReplicaDeleted:
		counts.Deleted++
	default:
		counts.Unknown++
	}
}

// recordsOf returns the records of all replicas in the status.
func recordsOf(status *tensorstack.GenericJobStatus) func(string, int32) replicas.Record {
	tasks := make(map[string]*tensorstack.Tasks, len(status.Tasks))
	for i := range status.Tasks {
		tasks[status.Tasks[i].Type] = &status.Tasks[i]
	}
	return func(group string, index int32) replicas.Record {
		task := tasks[group]
		if task == nil || int(index) >= len(task.Replicas) {
			return replicas.Record{}
		}
		r := &task.Replicas[index]
		return replicas.Record{Restarts: r.RestartCount, Settled: r.SettledRestarts, Phase: replicas.Phase(r.Phase)}
	}
}

func taskOf(status *tensorstack.GenericJobStatus, replicaType string) *tensorstack.Tasks {
	for i := range status.Tasks {
		if status.Tasks[i].Type == replicaType {
			return &status.Tasks[i]
		}
	}
	return nil
}

// isDerivedFromPods reports whether the changes of the status can also be derived from the pods. Records of pods that are
// gone cannot, and must not be lost; their containers can change only by being dropped, or by the end of the pod.
func (pl *planner) isDerivedFromPods() bool {
	before, after := &pl.seen.Job.Status, &pl.job.Status
	if before.Phase != after.Phase || !equality.Semantic.DeepEqual(before.Conditions, after.Conditions) {
		return false
	}
	for i := range pl.roster.Replicas {
		r := &pl.roster.Replicas[i]
		was := reported(before, r)
		if was == nil {
			return false
		}
		if is := reported(after, r); was.RestartCount != is.RestartCount || r.UID() == "" && (was.UID != is.UID || was.Phase != is.Phase) {
			return false
		}
	}
	return true
}

// reported returns what a status says of a replica, nil if nothing.
func reported(status *tensorstack.GenericJobStatus, r *replicas.Replica) *tensorstack.ReplicaStatus {
	task := taskOf(status, r.Group)
	if task == nil || int(r.Index) >= len(task.Replicas) {
		return nil
	}
	return &task.Replicas[r.Index]
}
