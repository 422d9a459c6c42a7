package genericjob

import (
	"k8s.io/apimachinery/pkg/api/equality"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// phase returns the phase of the job.
func (v *view) phase(outcome *jobs.Outcome, started bool) tensorstack.JobPhase {
	before := v.seen.Job.Status.Phase
	resumes := before == tensorstack.JobPhasePaused || before == tensorstack.JobPhaseResuming
	switch {
	case outcome != nil && outcome.Succeeded:
		return tensorstack.JobPhaseSucceeded
	case outcome != nil:
		return tensorstack.JobPhaseFailed
	case paused(v.job):
		return tensorstack.JobPhasePaused
	case v.roster.First(replicas.In(replicas.Unknown)) != nil:
		return tensorstack.JobPhaseUnknown
	case started && !(resumes && !v.roster.All(notTerminating)): // pods from before the pause are terminating
		return tensorstack.JobPhaseRunning
	case resumes:
		return tensorstack.JobPhaseResuming
	case (before == tensorstack.JobPhaseRunning || before == tensorstack.JobPhaseUnknown) && v.seen.Admission.MayRun():
		return tensorstack.JobPhaseRunning // replicas may restart
	}
	return tensorstack.JobPhasePending
}

// tasks returns the status of all replicas, and their counts.
func (v *view) tasks(ended bool) ([]tensorstack.Tasks, *tensorstack.Aggregate) {
	tasks := make([]tensorstack.Tasks, 0, len(v.job.Spec.ReplicaSpecs))
	counts := &tensorstack.Aggregate{}
	at := 0
	for spec := range pointers.To(v.job.Spec.ReplicaSpecs) {
		task := tensorstack.Tasks{Type: spec.Type, Replicas: make([]tensorstack.ReplicaStatus, 0, v.sizes[spec.Type])}
		old := taskOf(&v.job.Status, spec.Type)
		for range v.sizes[spec.Type] {
			r := &v.roster.Replicas[at]
			at++
			status := v.replica(r, old, ended)
			add(counts, status.Phase)
			task.RestartCount += status.RestartCount
			task.Replicas = append(task.Replicas, status)
		}
		tasks = append(tasks, task)
	}
	fitContainers(&v.job.Spec, tasks)
	return tasks, counts
}

// replica returns the status of a replica. The result of its last pod is kept when the pod is gone.
func (v *view) replica(r *replicas.Replica, old *tensorstack.Tasks, ended bool) tensorstack.ReplicaStatus {
	out := tensorstack.ReplicaStatus{Name: r.Name, Phase: tensorstack.ReplicaPhase(r.Phase), RestartCount: r.Restarts,
		SettledRestarts: r.Settled}
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
	case ended, paused(v.job) && !r.Phase.Finished():
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
	for task := range pointers.To(status.Tasks) {
		tasks[task.Type] = task
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
	return pointers.First(status.Tasks, func(task *tensorstack.Tasks) bool { return task.Type == replicaType })
}

// isDerivedFromPods reports whether the changes of the status can also be derived from the pods. Records of pods that
// are gone cannot, and must not be lost; their containers can change only by being dropped, or by the end of the pod.
func (v *view) isDerivedFromPods() bool {
	before, after := &v.seen.Job.Status, &v.job.Status
	if before.Phase != after.Phase || !equality.Semantic.DeepEqual(before.Conditions, after.Conditions) {
		return false
	}
	for r := range pointers.To(v.roster.Replicas) {
		was := reported(before, r)
		if was == nil {
			return false
		}
		if is := reported(after, r); was.RestartCount != is.RestartCount ||
			r.UID() == "" && (was.UID != is.UID || was.Phase != is.Phase) {
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
