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
func (l *planner) report() {
	status := &l.job.Status
	status.MinAvailable = minAvailable(l.job)
	l.countPods()
	if !finished(l.seen.Job) {
		mayRun := l.seen.Admission.MayRun() && !stopped(l.job)
		l.recordPods(mayRun)
		recordEvictions(status, l.records.evicted, l.roster, mayRun)
	}
	l.recordObjects()
	if equality.Semantic.DeepEqual(&l.seen.Job.Status, status) {
		if l.createsPods {
			l.plan.DueIfDone = l.seen.Now.Add(countsDelay) // no event follows their creation
		}
		return
	}
	l.plan.Status = l.job
	l.plan.StatusYields = l.isInitial()
	l.plan.StatusCanWait = !l.plan.StatusFirst && (l.isDerivedFromPods() || l.plan.StatusYields)
}

// missingClassReason is the reason of the event for a priority class that does not exist.
const missingClassReason = "PriorityClassNotFound"

// reportMissingClass reports that the class which the job names does not exist. As in Volcano, the job runs all the same:
// without the event, a misspelled name would only show in who comes first.
func (l *planner) reportMissingClass() {
	name := l.job.Spec.PriorityClassName
	if _, known := l.seen.Facts.Priorities.OfPods(name); known || finished(l.job) {
		return
	}
	l.plan.Events = append(l.plan.Events, jobs.Obstacle(missingClassReason, fmt.Sprintf(
		"PriorityClass %s, which spec.priorityClassName names, does not exist: it has no effect on the job's place in the queue and on its pods", name)))
}

// isInitial reports whether the status only says that a new job waits for its queue or for its pods to
// start. Such a status need not be written, as the next one soon replaces it. Once pods have run, the
// status may be their only record.
func (l *planner) isInitial() bool {
	state := &l.job.Status.State
	return l.seen.Job.Status.State.Phase == "" && state.Phase == volcano.Pending && l.count("", replicas.Running, replicas.Succeeded, replicas.Failed) == 0 &&
		(state.Reason == startingReason || state.Reason == volcano.WaitingForQuota && l.seen.Admission.Why == "")
}

// countPods counts the pods of all attempts: outdated ones use their nodes until they are gone. Of the
// pods that are gone, finished ones count.
func (l *planner) countPods() {
	status := &l.job.Status
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
	for i := range l.roster.Replicas {
		r := &l.roster.Replicas[i]
		of(r.Group, r.Pod, r.Phase)
	}
	for _, pod := range l.roster.Surplus {
		of("", pod, replicas.Creating)
	}
	l.recordReady()
}

// recordReady records how many of the pods that the status counts as running are ready: the API has no field for it, and
// a pod whose container ends again and again is running.
func (l *planner) recordReady() {
	value := ""
	if l.job.Status.Running > 0 {
		ready := 0
		for i := range l.roster.Replicas {
			if r := &l.roster.Replicas[i]; r.Ready && !replicas.IsTerminating(r.Pod) {
				ready++
			}
		}
		value = strconv.Itoa(ready)
	}
	setRecord(&l.job.Status, readyKey, value)
}

// isDerivedFromPods reports whether the changes of the status can also be derived from the pods. Records
// of pods that are gone cannot, and must not be lost.
func (l *planner) isDerivedFromPods() bool {
	before, after := &l.seen.Job.Status, &l.job.Status
	return before.State.Phase == after.State.Phase && before.Version == after.Version && before.RetryCount == after.RetryCount &&
		before.State.Reason == after.State.Reason && before.ControlledResources[hostsKey] == after.ControlledResources[hostsKey] &&
		l.roster.All(func(r *replicas.Replica) bool { return r.UID() != "" || !r.Phase.Finished() })
}

// progress returns what the queue needs to know.
func (l *planner) progress() jobs.Progress {
	ready, stage := l.readiness()
	p := jobs.Progress{Active: l.roster.Active(), Ready: ready, Stage: stage, Reclaimable: l.reclaimable(), Restarts: int64(l.job.Status.RetryCount)}
	if i := l.resizableTask(); i >= 0 {
		name := nameOf(l.job, i)
		p.Pods = map[string]int32{name: l.inUse(name)}
	}
	if finished(l.job) {
		p.Outcome = &jobs.Outcome{Succeeded: l.job.Status.State.Phase == volcano.Completed, Message: l.job.Status.State.Message}
		if p.Active && l.seen.Admission.HoldsQuota() {
			p.Outcome, p.Ended, p.Ready = nil, true, true // its pods keep their quota until they finish, and are not waited for
		}
		return p
	}
	for name := range p.Pods {
		p.Needed = map[string]int32{name: l.needed(name)}
	}
	if missing := len(l.roster.Missing()); missing > 0 {
		l.plan.DueBy(l.seen.NoteRefusals(&p, l.job.UID, int32(missing)))
	}
	return p
}

// readiness reports whether all pods that may run at once are ready or finished; of the elastic task, its
// minimum is enough. Pods of a task that still waits for the tasks it depends on are not missing. If they are
// not ready, it also returns which of the tasks with dependencies began last.
func (l *planner) readiness() (ready bool, last *jobs.Stage) {
	done := map[string]int32{}
	for i := range l.roster.Replicas {
		if r := &l.roster.Replicas[i]; r.Ready || r.Phase.Finished() {
			done[r.Group]++
		}
	}
	least, elastic := leastOf(l.job), l.resizableTask()
	ready = true
	for i := range l.job.Spec.Tasks {
		name := nameOf(l.job, i)
		need := l.granted(name)
		if i == elastic {
			need = min(need, max(l.seen.Admission.PodSets[name].Bounds(jobs.Bounds{Least: least[i], Most: need}).Least, 1))
		}
		if done[name] >= need || !l.mayStart(l.tasks[name]) {
			continue
		}
		ready = false
		if l.tasks[name].DependsOn != nil {
			last = jobs.LastStage(last, &jobs.Stage{Name: name, Since: l.startOf(name)})
		}
	}
	return ready, last
}

// startOf returns when the first pod of the task that exists was created, zero if there is none.
func (l *planner) startOf(task string) (first time.Time) {
	members := l.roster.Group(task)
	for i := range members {
		if pod := members[i].Pod; pod != nil && (first.IsZero() || pod.CreationTimestamp.Time.Before(first)) {
			first = pod.CreationTimestamp.Time
		}
	}
	return first
}
