package vcjob

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// missingClassReason is the reason of the event for a priority class that does not exist.
const missingClassReason = "PriorityClassNotFound"

// noteMissingClass reports that the class which the job names does not exist. As in Volcano, the job runs all the same:
// without the event, a misspelled name would only show in who comes first.
func (rep *reporter) noteMissingClass() {
	name := rep.job.Spec.PriorityClassName
	if _, known := rep.seen.Facts.Priorities.OfPods(name); known || hasOutcome(rep.job) {
		return
	}
	rep.plan.AddEvents(write.Obstacle(missingClassReason, fmt.Sprintf(
		"PriorityClass %s, which spec.priorityClassName names, does not exist: it has no effect on the job's place in the queue and on its pods", name)))
}

// isInitial reports whether the status only says that a new job waits for its queue or for its pods to start. That
// status need not be written, as the next one soon replaces it. Once pods have run, the status may be their only
// record.
func (v *view) isInitial() bool {
	state := &v.job.Status.State
	return v.seen.Job.Status.State.Phase == "" && state.Phase == volcano.Pending &&
		v.count("", replicas.Running, replicas.Succeeded, replicas.Failed) == 0 &&
		(state.Reason == startingReason || state.Reason == volcano.WaitingForQuota && v.seen.Admission.Why == "")
}

// countPods counts the pods of all attempts: outdated ones use their nodes until they are gone. Of the
// pods that are gone, finished ones count.
func (rep *reporter) countPods() {
	status := &rep.job.Status
	counts := map[corev1.PodPhase]*int32{corev1.PodPending: &status.Pending, corev1.PodRunning: &status.Running,
		corev1.PodSucceeded: &status.Succeeded, corev1.PodFailed: &status.Failed, corev1.PodUnknown: &status.Unknown}
	for _, count := range counts {
		*count = 0
	}
	status.Terminating, status.TaskStatusCount = 0, nil
	of := func(task string, pod *corev1.Pod, recorded replicas.Phase) {
		phase := corev1.PodPhase(recorded)
		switch {
		case pod == nil && !recorded.Finished():
			return
		case pod != nil && replicas.IsTerminating(pod) && !recorded.Finished():
			status.Terminating++
			return
		case pod != nil:
			phase = pod.Status.Phase
		}
		if counts[phase] == nil {
			phase = corev1.PodPending
		}
		*counts[phase]++
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
	for r := range pointers.To(rep.roster.Replicas) {
		of(r.Group, r.Pod, r.Phase)
	}
	for _, pod := range rep.roster.Surplus {
		of("", pod, replicas.Creating)
	}
	rep.recordReady()
}

// recordReady records how many of the pods that the status counts as running are ready: the API has no field for it,
// and a pod whose container ends again and again is running.
func (rep *reporter) recordReady() {
	value := ""
	if rep.job.Status.Running > 0 {
		ready := pointers.Count(rep.roster.Replicas, func(r *replicas.Replica) bool {
			return r.Ready && !replicas.IsTerminating(r.Pod)
		})
		value = strconv.Itoa(int(ready))
	}
	setRecord(&rep.job.Status, readyKey, value)
}

// isDerivedFromPods reports whether the changes of the status can also be derived from the pods. Records
// of pods that are gone cannot, and must not be lost.
func (v *view) isDerivedFromPods() bool {
	before, after := &v.seen.Job.Status, &v.job.Status
	return before.State.Phase == after.State.Phase && before.State.Reason == after.State.Reason &&
		before.Version == after.Version && before.RetryCount == after.RetryCount &&
		before.ControlledResources[hostsKey] == after.ControlledResources[hostsKey] &&
		v.roster.All(func(r *replicas.Replica) bool { return r.UID() != "" || !r.Phase.Finished() })
}

// readiness reports whether all pods that may run at once are ready or finished; of the elastic task, its
// minimum is enough. Pods of a task that still waits for the tasks it depends on are not missing. If they are
// not ready, it also returns which of the tasks with dependencies began last.
func (s *sizes) readiness() (ready bool, last *jobs.Stage) {
	done := map[string]int32{}
	for r := range pointers.To(s.roster.Replicas) {
		if r.Ready || r.Phase.Finished() {
			done[r.Group]++
		}
	}
	least, elastic := leastOf(s.job), s.resizableTask()
	ready = true
	for i := range s.job.Spec.Tasks {
		name := nameOf(s.job, i)
		need := s.granted(name)
		if i == elastic {
			need = min(need, max(s.seen.Admission.PodSets[name].Bounds(jobs.Bounds{Least: least[i], Most: need}).Least, 1))
		}
		if done[name] >= need || !s.mayStart(s.tasks[name]) {
			continue
		}
		ready = false
		if s.tasks[name].DependsOn != nil {
			last = jobs.LastStage(last, &jobs.Stage{Name: name, Since: s.startOf(name)})
		}
	}
	return ready, last
}

// reporter brings the status of the job up to date, with the events of what changes in it, and so decides what the next
// plans do.
type reporter struct {
	*view
	plan     *jobs.Plan
	sizes    *sizes
	objects  *objects
	policies *policies
}

// setPhase sets the phase of the job. The status is written before anything else, so that what follows from
// the phase is never done without it.
func (rep *reporter) setPhase(phase volcano.JobPhase, reason, message string) {
	status, now := &rep.job.Status, metav1.NewTime(rep.seen.Now)
	running := lastTime(status, volcano.Running)
	if leadsToOutcome(phase) && running != nil && status.RunningDuration == nil {
		status.RunningDuration = &metav1.Duration{Duration: rep.seen.Now.Sub(running.Time).Round(time.Second)}
	}
	status.State = volcano.JobState{Phase: phase, Reason: reason, Message: message, LastTransitionTime: now}
	status.Conditions = append(status.Conditions, volcano.JobCondition{Status: phase, LastTransitionTime: ptr.To(now)})
	if excess := len(status.Conditions) - mostConditions; excess > 0 {
		status.Conditions = status.Conditions[excess:]
	}
	rep.plan.StatusFirst = true
	rep.recordPhase(phase, message)
}

// mostConditions bounds the list of past phases: a job may be stopped and resumed any number of times.
const mostConditions = 64

// setDerivedPhase sets a phase that also follows from the pods. Nothing needs to wait for the write of the status: if
// the write is lost, the next plan sets the same phase.
func (rep *reporter) setDerivedPhase(phase volcano.JobPhase, reason, message string) {
	first := rep.plan.StatusFirst
	rep.setPhase(phase, reason, message)
	rep.plan.StatusFirst = first
}

// recordPhase adds the event for a change of phase that users care about.
func (rep *reporter) recordPhase(phase volcano.JobPhase, message string) {
	switch phase {
	case volcano.Failed, volcano.Terminated:
		rep.plan.AddEvents(write.Warning(string(phase), message))
	case volcano.Completed, volcano.Aborted:
		rep.plan.AddEvents(write.Normal(string(phase), message))
	}
}

// lastTime returns when the job last entered the phase, nil if it never did.
func lastTime(status *volcano.JobStatus, phase volcano.JobPhase) *metav1.Time {
	for i := len(status.Conditions) - 1; i >= 0; i-- {
		if c := &status.Conditions[i]; c.Status == phase {
			return c.LastTransitionTime
		}
	}
	return nil
}

// setPhaseOnceInactive sets the phase once none of the job's pods is active.
func (rep *reporter) setPhaseOnceInactive(phase volcano.JobPhase, reason, message string) {
	if !rep.roster.Active() {
		rep.setPhase(phase, reason, message)
	}
}

// Reasons and messages of jobs that are admitted, before and after enough of their pods run.
const (
	startingReason, startingMessage = "Starting", "Pods are being started"
	runningReason, runningMessage   = "Running", "Enough pods run"
)

// recordPods records which pods have finished, and which of the current attempt exist that have not or
// await their restart, unless the job may not run.
func (rep *reporter) recordPods(mayRun bool) {
	status, roster := &rep.job.Status, rep.roster
	recordMatching(status, succeededKey, roster, replicas.In(replicas.Succeeded))
	recordMatching(status, failedKey, roster,
		func(r *replicas.Replica) bool { return r.Phase == replicas.Failed && !rep.policies.awaitsRestart(r) })
	recordMatching(status, aliveKey, roster, func(r *replicas.Replica) bool {
		return mayRun && r.UID() != "" && (!r.Phase.Finished() || rep.policies.awaitsRestart(r))
	})
}
