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

// policyEvent is an event that policies may apply to.
type policyEvent struct {
	event bus.Event
	// exitCodes are those of all failed containers of a failed pod; none if no container reports one.
	exitCodes []int32
	task      string
	// replica is nil for events of a task.
	replica *replicas.Replica
	// since is when it began; zero if unknown.
	since time.Time
	// what describes it for users.
	description string
	// failed says that an evicted pod has failed through its eviction.
	failed bool
}

// react executes the policies for what has happened, and reports whether it did anything. An action on
// the whole job takes precedence; if there are several, the first in order of tasks and pods. Actions
// on single tasks and pods are executed together and count as one restart, as pods that fail together
// have one cause. Restarts in a row are delayed, and then all that wait are executed with the first
// that is due; one of the whole job takes those of its parts with it.
func (pl *planner) react() bool {
	var single, delayed []pendingAction
	for _, h := range pl.policyEvents() {
		policy := pl.policyFor(h)
		if policy == nil || policy.Action == bus.ResumeJobAction {
			continue // a stopped job is resumed only by a Command, and any other runs already
		}
		if !pl.isDue(policy, h) {
			pl.failureWaits = pl.failureWaits || h.replica != nil && h.replica.Phase == replicas.Failed
			continue
		}
		d := pendingAction{policy.Action, h.task, h.replica, h.reasonFor(policy), pl.isSettled(h)}
		switch {
		case pl.isDelayed(d.action, h):
			delayed = append(delayed, d)
		case d.isSingle():
			single = append(single, d)
		default:
			pl.execute(d)
			return true
		}
	}
	if len(single) == 0 || slices.ContainsFunc(delayed, func(d pendingAction) bool { return !d.isSingle() }) {
		return false
	}
	return pl.restartTasksAndPods(append(single, delayed...))
}

// reasonFor returns the description, with the exit code that the policy is for where that is another container's.
func (pe *policyEvent) reasonFor(p *volcano.LifecyclePolicy) string {
	if p.ExitCode == nil || len(pe.exitCodes) == 0 || *p.ExitCode == pe.exitCodes[0] {
		return pe.description
	}
	return fmt.Sprintf("a container of pod %s has failed with exit code %d", pe.replica.Name, *p.ExitCode)
}

// policyFor returns the policy to apply, nil if there is none. For a pod that has failed through its
// eviction, policies for evictions come first, then those for failures.
func (pl *planner) policyFor(h policyEvent) *volcano.LifecyclePolicy {
	policy := pl.firstPolicyFor(h)
	if policy == nil && h.failed {
		h.event = bus.PodFailedEvent
		policy = pl.firstPolicyFor(h)
	}
	return policy
}

// firstPolicyFor returns the first matching policy of the task, or else of the job.
func (pl *planner) firstPolicyFor(h policyEvent) *volcano.LifecyclePolicy {
	for _, list := range [][]volcano.LifecyclePolicy{pl.tasks[h.task].Policies, pl.job.Spec.Policies} {
		for i := range list {
			if isFor(&list[i], h) {
				return &list[i]
			}
		}
	}
	return nil
}

// isFor reports whether the policy applies to the event. Pods that are pending or running are no event
// by themselves: a policy for any event does not include them, and one for pending pods must have a
// timeout. One for an exit code applies if any container of the pod has failed with it.
func isFor(p *volcano.LifecyclePolicy, h policyEvent) bool {
	if p.ExitCode != nil {
		return h.event == bus.PodFailedEvent && slices.Contains(h.exitCodes, *p.ExitCode)
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

// isDue reports whether the policy's timeout has passed, and otherwise schedules a reconcile. The start
// of an eviction is recorded first, as the pod will be gone by then.
func (pl *planner) isDue(p *volcano.LifecyclePolicy, h policyEvent) bool {
	if p.Timeout != nil && h.event == bus.PodEvictedEvent && !h.failed {
		at := slot(h.task, h.replica.Index)
		if since, known := pl.records.evicted[at]; known {
			h.since = since
		} else {
			if h.since.IsZero() {
				h.since = pl.seen.Now
			}
			pl.records.evicted[at], pl.plan.StatusFirst = h.since, true
		}
	}
	if p.Timeout == nil || h.since.IsZero() {
		return true
	}
	due := h.since.Add(p.Timeout.Duration)
	if pl.seen.Now.Before(due) {
		pl.plan.DueBy(due)
		return false
	}
	return true
}

// policyEvents returns all current events, by task and pod. An event that a policy has acted on does not
// recur, as its pods are outdated.
func (pl *planner) policyEvents() []policyEvent {
	var out []policyEvent
	for i := range pl.roster.Replicas {
		r := &pl.roster.Replicas[i]
		at := slot(r.Group, r.Index)
		if _, waits := pl.records.evicted[at]; waits && notStarted(r) || r.Phase == replicas.Creating && r.Pod == nil && pl.records.alive[at] {
			out = append(out, policyEvent{event: bus.PodEvictedEvent, task: r.Group, replica: r, description: evicted(r)})
		}
		out = append(out, podEvents(r)...)
	}
	out = append(out, pl.partlyRunning()...)
	for i := range pl.job.Spec.Tasks {
		task, name := &pl.job.Spec.Tasks[i], nameOf(pl.job, i)
		if count := countOf(task); count > 0 && pl.count(name, replicas.Succeeded) == count {
			out = append(out, policyEvent{event: bus.TaskCompletedEvent, task: name, since: pl.lastEnd(name), description: "all pods of task " + name + " have succeeded"})
		}
		if n := pl.restartsOfTask(name); n > 0 && n >= maxRetryOrDefault(task.MaxRetry) {
			out = append(out, policyEvent{event: bus.TaskFailedEvent, task: name, description: fmt.Sprintf("containers of task %s were restarted %d times", name, n)})
		}
	}
	return out
}

func evicted(r *replicas.Replica) string { return "pod " + r.Name + " was evicted or deleted" }

func maxRetryOrDefault(n int32) int32 {
	if n == 0 {
		return volcano.DefaultMaxRetry
	}
	return n
}

func podEvents(r *replicas.Replica) []policyEvent {
	if r.UID() == "" {
		return nil
	}
	h := policyEvent{task: r.Group, replica: r}
	switch {
	case r.Phase == replicas.Failed:
		h.event, h.since, h.description = bus.PodFailedEvent, firstNonZero(replicas.EndOf(r.Pod), lastTransition(r.Pod)), failures.Of(r)
		h.exitCodes = replicas.ExitCodes(r.Pod)
		if replicas.Disrupted(r.Pod) {
			why := ": it was evicted from its node"
			if replicas.NeverRan(r.Pod) {
				why = ": its node rejected it before it ran"
			}
			h.event, h.failed, h.description = bus.PodEvictedEvent, true, h.description+why
		}
	case r.Phase == replicas.Succeeded:
		return nil
	case replicas.IsTerminating(r.Pod):
		h.event, h.since, h.description = bus.PodEvictedEvent, r.Pod.DeletionTimestamp.Time, evicted(r)
		if grace := r.Pod.DeletionGracePeriodSeconds; grace != nil {
			h.since = h.since.Add(-time.Duration(*grace) * time.Second)
		}
	case r.Phase == replicas.Unknown:
		h.event, h.since, h.description = bus.JobUnknownEvent, lastTransition(r.Pod), "the state of pod "+r.Name+" is unknown"
	case r.Phase == replicas.Running:
		h.event, h.since, h.description = bus.PodRunningEvent, firstNonZero(startOf(r.Pod), lastTransition(r.Pod)), "pod "+r.Name+" runs"
	default:
		h.event, h.since, h.description = bus.PodPendingEvent, r.Pod.CreationTimestamp.Time, "pod "+r.Name+" does not start"
	}
	return []policyEvent{h}
}

// partlyRunning returns the events of unschedulable pods while other pods of the job run.
func (pl *planner) partlyRunning() []policyEvent {
	if pl.count("", replicas.Running) == 0 {
		return nil
	}
	for i := range pl.roster.Replicas {
		r := &pl.roster.Replicas[i]
		if r.UID() == "" || r.Phase != replicas.Creating {
			continue
		}
		if since := unschedulableSince(r.Pod); !since.IsZero() {
			return []policyEvent{{event: bus.JobUnknownEvent, task: r.Group, replica: r, since: since, description: "pod " + r.Name + " is unschedulable while others run"}}
		}
	}
	return nil
}

func (pl *planner) restartsOfTask(task string) (n int32) {
	members := pl.roster.Group(task)
	for i := range members {
		if r := &members[i]; r.UID() != "" && !r.Phase.Finished() {
			n += restartsOf(r.Pod)
		}
	}
	return n
}

// lastEnd returns when the task's last pod finished, as far as its pods still exist.
func (pl *planner) lastEnd(task string) (last time.Time) {
	members := pl.roster.Group(task)
	for i := range members {
		if r := &members[i]; r.UID() != "" {
			if at := replicas.EndOf(r.Pod); at.After(last) {
				last = at
			}
		}
	}
	return last
}

// startOf returns when the pod's first container started; zero if none has. The status of a container
// that was restarted once also has its previous run; if one was restarted more often, it is when the
// kubelet accepted the pod.
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

// lastTransition returns the time of the last change of the pod's conditions, or its creation time if it has
// none.
func lastTransition(pod *corev1.Pod) time.Time {
	last := pod.CreationTimestamp.Time
	for i := range pod.Status.Conditions {
		if at := pod.Status.Conditions[i].LastTransitionTime; at.After(last) {
			last = at.Time
		}
	}
	return last
}

// firstNonZero returns the first of the times that is not zero.
func firstNonZero(times ...time.Time) time.Time {
	for _, at := range times {
		if !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}
