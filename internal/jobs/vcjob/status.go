package vcjob

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// report fills in the status. A final status is kept.
func (pl *planner) report() {
	status := &pl.job.Status
	status.MinAvailable = minAvailable(pl.job)
	pl.countPods()
	if !finished(pl.seen.Job) {
		mayRun := pl.seen.Admission.MayRun() && !stopped(pl.job)
		pl.recordPods(mayRun)
		recordEvictions(status, pl.records.evicted, pl.roster, mayRun)
	}
	pl.recordObjects()
	if equality.Semantic.DeepEqual(&pl.seen.Job.Status, status) {
		if pl.createsPods {
			pl.plan.DueIfDone = pl.seen.Now.Add(countsDelay) // no event follows their creation
		}
		return
	}
	pl.plan.Status = pl.job
	pl.plan.StatusYields = pl.isInitial()
	pl.plan.StatusCanWait = !pl.plan.StatusFirst && (pl.isDerivedFromPods() || pl.plan.StatusYields)
}

// missingClassReason is the reason of the event for a priority class that does not exist.
const missingClassReason = "PriorityClassNotFound"

// reportMissingClass reports that the class which the job names does not exist. As in Volcano, the job runs all the same:
// without the event, a misspelled name would only show in who comes first.
func (pl *planner) reportMissingClass() {
	name := pl.job.Spec.PriorityClassName
	if _, known := pl.seen.Facts.Priorities.OfPods(name); known || finished(pl.job) {
		return
	}
	pl.plan.Events = append(pl.plan.Events, jobs.Obstacle(missingClassReason, fmt.Sprintf(
		"PriorityClass %s, which spec.priorityClassName names, does not exist: it has no effect on the job's place in the queue and on its pods", name)))
}

// isInitial reports whether the status only says that a new job waits for its queue or for its pods to
// start. Such a status need not be written, as the next one soon replaces it. Once pods have run, the
// status may be their only record.
func (pl *planner) isInitial() bool {
	state := &pl.job.Status.State
	return pl.seen.Job.Status.State.Phase == "" && state.Phase == volcano.Pending && pl.count("", replicas.Running, replicas.Succeeded, replicas.Failed) == 0 &&
		(state.Reason == startingReason || state.Reason == volcano.WaitingForQuota && pl.seen.Admission.Why == "")
}

// countPods counts the pods of all attempts: outdated ones use their nodes until they are gone. Of the
// pods that are gone, finished ones count.
func (pl *planner) countPods() {
	status := &pl.job.Status
	status.Pending, status.Running, status.Succeeded, status.Failed, status.Terminating, status.Unknown = 0, 0, 0, 0, 0, 0
	status.TaskStatusCount = nil
	add := func(task string, phase corev1.PodPhase, to *int32) {
		*to++
		if task == "" {
			return
		}
		if status.TaskStatusCount == nil {
			status.TaskStatusCount = map[string]volcano.TaskState{}
		}
		if status.TaskStatusCount[task].Phase == nil {
			status.TaskStatusCount[task] = volcano.TaskState{Phase: map[corev1.PodPhase]int32{}}
		}
		status.TaskStatusCount[task].Phase[phase]++
	}
	of := func(task string, pod *corev1.Pod, phase replicas.Phase) {
		if pod != nil {
			if replicas.IsTerminating(pod) && !phase.Finished() {
				add("", "", &status.Terminating)
				return
			}
			phase = replicas.Phase(pod.Status.Phase)
		}
		switch phase {
		case replicas.Running:
			add(task, corev1.PodRunning, &status.Running)
		case replicas.Succeeded:
			add(task, corev1.PodSucceeded, &status.Succeeded)
		case replicas.Failed:
			add(task, corev1.PodFailed, &status.Failed)
		case replicas.Unknown:
			add(task, corev1.PodUnknown, &status.Unknown)
		default:
			if pod != nil {
				add(task, corev1.PodPending, &status.Pending)
			}
		}
	}
	for i := range pl.roster.Replicas {
		r := &pl.roster.Replicas[i]
		of(r.Group, r.Pod, r.Phase)
	}
	for _, pod := range pl.roster.Surplus {
		of("", pod, replicas.Creating)
	}
	pl.recordReady()
}

// recordReady records how many of the pods that the status counts as running are ready: the API has no field for it, and
// a pod whose container ends again and again is running.
func (pl *planner) recordReady() {
	value := ""
	if pl.job.Status.Running > 0 {
		ready := replicas.Count(pl.roster.Replicas, func(r *replicas.Replica) bool {
			return r.Ready && !replicas.IsTerminating(r.Pod)
		})
		value = strconv.Itoa(int(ready))
	}
	setRecord(&pl.job.Status, readyKey, value)
}

// isDerivedFromPods reports whether the changes of the status can also be derived from the pods. Records
// of pods that are gone cannot, and must not be lost.
func (pl *planner) isDerivedFromPods() bool {
	before, after := &pl.seen.Job.Status, &pl.job.Status
	return before.State.Phase == after.State.Phase && before.Version == after.Version && before.RetryCount == after.RetryCount &&
		before.State.Reason == after.State.Reason && before.ControlledResources[hostsKey] == after.ControlledResources[hostsKey] &&
		pl.roster.All(func(r *replicas.Replica) bool { return r.UID() != "" || !r.Phase.Finished() })
}

// progress returns what the queue needs to know.
func (pl *planner) progress() jobs.Progress {
	ready, stage := pl.readiness()
	p := jobs.Progress{Active: pl.roster.Active(), Ready: ready, Stage: stage, Reclaimable: pl.reclaimable(), Restarts: int64(pl.job.Status.RetryCount)}
	if i := pl.resizableTask(); i >= 0 {
		name := nameOf(pl.job, i)
		p.Pods = map[string]int32{name: pl.roster.InUse(name)}
	}
	if finished(pl.job) {
		state := &pl.job.Status.State
		if p.End(&jobs.Outcome{Succeeded: state.Phase == volcano.Completed, Message: state.Message}, pl.seen.Admission) {
			p.Ready = true // pods that run on are not waited for
		}
		return p
	}
	for name := range p.Pods {
		p.Needed = map[string]int32{name: pl.needed(name)}
	}
	if missing := len(pl.roster.Missing()); missing > 0 {
		pl.plan.DueBy(pl.seen.NoteRefusals(&p, pl.job.UID, int32(missing)))
	}
	return p
}

// readiness reports whether all pods that may run at once are ready or finished; of the elastic task, its
// minimum is enough. Pods of a task that still waits for the tasks it depends on are not missing. If they are
// not ready, it also returns which of the tasks with dependencies began last.
func (pl *planner) readiness() (ready bool, last *jobs.Stage) {
	done := map[string]int32{}
	for i := range pl.roster.Replicas {
		if r := &pl.roster.Replicas[i]; r.Ready || r.Phase.Finished() {
			done[r.Group]++
		}
	}
	least, elastic := leastOf(pl.job), pl.resizableTask()
	ready = true
	for i := range pl.job.Spec.Tasks {
		name := nameOf(pl.job, i)
		need := pl.granted(name)
		if i == elastic {
			need = min(need, max(pl.seen.Admission.PodSets[name].Bounds(jobs.Bounds{Least: least[i], Most: need}).Least, 1))
		}
		if done[name] >= need || !pl.mayStart(pl.tasks[name]) {
			continue
		}
		ready = false
		if pl.tasks[name].DependsOn != nil {
			last = jobs.LastStage(last, &jobs.Stage{Name: name, Since: pl.startOf(name)})
		}
	}
	return ready, last
}

// startOf returns when the first pod of the task that exists was created, zero if there is none.
func (pl *planner) startOf(task string) (first time.Time) {
	members := pl.roster.Group(task)
	for i := range members {
		if pod := members[i].Pod; pod != nil && (first.IsZero() || pod.CreationTimestamp.Time.Before(first)) {
			first = pod.CreationTimestamp.Time
		}
	}
	return first
}
