package vcjob

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/replicas"
)

// happening is something that policies may be for.
type happening struct {
	event bus.Event
	// exitCode of a pod that has failed, 0 if no container says one.
	exitCode int32
	task     string
	// replica is nil for what happens to a task.
	replica *replicas.Replica
	// since is when it began, zero if that is not known.
	since time.Time
	// what people are told.
	what string
	// failed says of an evicted pod that it has failed by it.
	failed bool
}

// react looks for what has happened and does what policies say about it, and reports
// whether it did. What concerns the whole job goes first; of that, what comes first in the
// order of tasks and pods. Things that are done to single tasks and pods are done together
// and count as one restart: what fails together is one failure.
func (l *look) react() bool {
	var single []deed
	for _, h := range l.happenings() {
		policy := l.policyFor(h)
		if policy == nil || policy.Action == bus.ResumeJobAction {
			continue // a job that is stopped is resumed by Commands alone, and any other runs already
		}
		if !l.isDue(policy, h) {
			l.failureWaits = l.failureWaits || h.replica != nil && h.replica.Phase == replicas.Failed
			continue
		}
		d := deed{policy.Action, h.task, h.replica, h.what}
		if !d.isSingle() {
			l.do(d)
			return true
		}
		single = append(single, d)
	}
	return l.restartSingly(single)
}

// policyFor is the first policy for what happened, nil if there is none. A pod that has failed
// because it was evicted was evicted; where nobody says what to do about that, it has failed.
func (l *look) policyFor(h happening) *volcano.LifecyclePolicy {
	policy := l.firstPolicyFor(h)
	if policy == nil && h.failed {
		h.event = bus.PodFailedEvent
		policy = l.firstPolicyFor(h)
	}
	return policy
}

// firstPolicyFor is the first policy of the task, or else of the job.
func (l *look) firstPolicyFor(h happening) *volcano.LifecyclePolicy {
	for _, list := range [][]volcano.LifecyclePolicy{l.tasks[h.task].Policies, l.job.Spec.Policies} {
		for i := range list {
			if isFor(&list[i], h) {
				return &list[i]
			}
		}
	}
	return nil
}

// isFor reports whether the policy is for what happened. That a pod waits or runs is no
// event by itself: a policy for any event means neither, and one for pods that wait must
// say for how long.
func isFor(p *volcano.LifecyclePolicy, h happening) bool {
	if p.ExitCode != nil {
		return h.event == bus.PodFailedEvent && h.exitCode != 0 && *p.ExitCode == h.exitCode
	}
	named := p.Event == h.event || slices.Contains(p.Events, h.event)
	switch h.event {
	case bus.PodPendingEvent:
		return named && p.Timeout != nil
	case bus.PodRunningEvent:
		return named
	}
	return named || p.Event == bus.AnyEvent || slices.Contains(p.Events, bus.AnyEvent)
}

// isDue reports whether it has been so for as long as the policy wants, and else has the
// job looked at again when it will have been. Since when a pod is evicted is written first: it will be gone by then.
func (l *look) isDue(p *volcano.LifecyclePolicy, h happening) bool {
	if p.Timeout != nil && h.event == bus.PodEvictedEvent && !h.failed {
		at := slot(h.task, h.replica.Index)
		if since, known := l.memory.evicted[at]; known {
			h.since = since
		} else {
			if h.since.IsZero() {
				h.since = l.seen.Now
			}
			l.memory.evicted[at], l.plan.StatusFirst = h.since, true
		}
	}
	if p.Timeout == nil || h.since.IsZero() {
		return true
	}
	due := h.since.Add(p.Timeout.Duration)
	if l.seen.Now.Before(due) {
		l.plan.DueBy(due)
		return false
	}
	return true
}

// happenings are all that there are now, by task and pod. What was done about before is
// none any more: its pods are pods of the past.
func (l *look) happenings() []happening {
	var out []happening
	for i := range l.roster.Replicas {
		r := &l.roster.Replicas[i]
		at := slot(r.Group, r.Index)
		if _, waits := l.memory.evicted[at]; waits && waitsToRun(r) || r.Phase == replicas.Creating && r.Pod == nil && l.memory.alive[at] {
			out = append(out, happening{event: bus.PodEvictedEvent, task: r.Group, replica: r, what: evicted(r)})
		}
		out = append(out, happeningsOf(r)...)
	}
	out = append(out, l.partlyRunning()...)
	for i := range l.job.Spec.Tasks {
		task, name := &l.job.Spec.Tasks[i], nameOf(l.job, i)
		if count := countOf(task); count > 0 && l.count(name, replicas.Succeeded) == count {
			out = append(out, happening{event: bus.TaskCompletedEvent, task: name, since: l.lastEnd(name), what: "all pods of task " + name + " have succeeded"})
		}
		if n := l.restartsOfTask(name); n > 0 && n >= cmpOr(task.MaxRetry) {
			out = append(out, happening{event: bus.TaskFailedEvent, task: name, what: fmt.Sprintf("containers of task %s were restarted %d times", name, n)})
		}
	}
	return out
}

func evicted(r *replicas.Replica) string { return "pod " + r.Name + " was evicted or deleted" }

func cmpOr(n int32) int32 {
	if n == 0 {
		return volcano.DefaultMaxRetry
	}
	return n
}

func happeningsOf(r *replicas.Replica) []happening {
	if r.UID() == "" {
		return nil
	}
	h := happening{task: r.Group, replica: r}
	switch {
	case r.Phase == replicas.Failed:
		h.event, h.since, h.what = bus.PodFailedEvent, firstOf(endOf(r.Pod), turnOf(r.Pod)), failureOf(r)
		h.exitCode, _, _ = replicas.Failure(r.Pod)
		if replicas.Disrupted(r.Pod) {
			h.event, h.failed, h.what = bus.PodEvictedEvent, true, h.what+": it was evicted from its node"
		}
	case r.Phase == replicas.Succeeded:
		return nil
	case replicas.IsTerminating(r.Pod):
		h.event, h.since, h.what = bus.PodEvictedEvent, r.Pod.DeletionTimestamp.Time, evicted(r)
		if grace := r.Pod.DeletionGracePeriodSeconds; grace != nil {
			h.since = h.since.Add(-time.Duration(*grace) * time.Second)
		}
	case r.Phase == replicas.Unknown:
		h.event, h.since, h.what = bus.JobUnknownEvent, turnOf(r.Pod), "nothing is known of pod "+r.Name
	case r.Phase == replicas.Running:
		h.event, h.since, h.what = bus.PodRunningEvent, firstOf(startOf(r.Pod), turnOf(r.Pod)), "pod "+r.Name+" runs"
	default:
		h.event, h.since, h.what = bus.PodPendingEvent, r.Pod.CreationTimestamp.Time, "pod "+r.Name+" does not start"
	}
	return []happening{h}
}

// partlyRunning is that a part of the job runs and a pod finds no node.
func (l *look) partlyRunning() []happening {
	if l.count("", replicas.Running) == 0 {
		return nil
	}
	for i := range l.roster.Replicas {
		r := &l.roster.Replicas[i]
		if r.UID() == "" || r.Phase != replicas.Creating {
			continue
		}
		if since := unschedulableSince(r.Pod); !since.IsZero() {
			return []happening{{event: bus.JobUnknownEvent, task: r.Group, replica: r, since: since, what: "pod " + r.Name + " finds no node, while others run"}}
		}
	}
	return nil
}

func (l *look) restartsOfTask(task string) (n int32) {
	for i := range l.roster.Replicas {
		if r := &l.roster.Replicas[i]; r.Group == task && r.UID() != "" && !r.Phase.Finished() {
			n += restartsOf(r.Pod)
		}
	}
	return n
}

// lastEnd is when the last pod of the task has ended, as far as pods still tell.
func (l *look) lastEnd(task string) (last time.Time) {
	for i := range l.roster.Replicas {
		if r := &l.roster.Replicas[i]; r.Group == task && r.UID() != "" {
			if at := endOf(r.Pod); at.After(last) {
				last = at
			}
		}
	}
	return last
}

// endOf is when the last container of the pod has ended, zero if none has.
func endOf(pod *corev1.Pod) (last time.Time) {
	for i := range pod.Status.ContainerStatuses {
		if ended := pod.Status.ContainerStatuses[i].State.Terminated; ended != nil && ended.FinishedAt.After(last) {
			last = ended.FinishedAt.Time
		}
	}
	return last
}

// startOf is when the first container of the pod has started, as far as it tells, zero if none has. One that is restarted where it is
// tells of its last run too; of a pod in which one was restarted more often it is when its node took it.
func startOf(pod *corev1.Pod) (first time.Time) {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if status.RestartCount > 1 && pod.Status.StartTime != nil {
			return pod.Status.StartTime.Time
		}
		for _, state := range []*corev1.ContainerState{&status.LastTerminationState, &status.State} {
			var at time.Time
			switch {
			case state.Running != nil:
				at = state.Running.StartedAt.Time
			case state.Terminated != nil:
				at = state.Terminated.StartedAt.Time
			}
			if !at.IsZero() && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}

// turnOf is when a condition of the pod has changed last, or since when the pod is there if it has none.
func turnOf(pod *corev1.Pod) time.Time {
	last := pod.CreationTimestamp.Time
	for i := range pod.Status.Conditions {
		if at := pod.Status.Conditions[i].LastTransitionTime; at.After(last) {
			last = at.Time
		}
	}
	return last
}

// firstOf is the first of the times that is known.
func firstOf(times ...time.Time) time.Time {
	for _, at := range times {
		if !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}
