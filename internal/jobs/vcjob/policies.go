package vcjob

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// policies knows which actions the policies of the job and its tasks ask for.
type policies struct {
	*view
	plan *jobs.Plan
	// failureWaits says that a policy with a timeout will act on a failed pod later.
	failureWaits bool
	// delayed are the names of pods that a policy will restart once the delay of its restart has passed.
	delayed map[string]bool
}

// policyEvent is an event that policies may apply to.
type policyEvent struct {
	event bus.Event
	// exitCodes are the exit codes of all failed containers of a failed pod; none if no container reports one.
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

// due returns the actions that policies ask for because of what has happened. An action on the whole job takes
// precedence and is returned alone; if there are several, the first in order of tasks and pods. Actions on single tasks
// and pods are executed together and count as one restart, as pods that fail together have one cause. Restarts in a row
// are delayed, and then all that wait are executed with the first that is due; an action on the whole job includes the
// actions on its parts.
func (po *policies) due() []pendingAction {
	var single, delayed []pendingAction
	for _, h := range po.policyEvents() {
		policy := po.policyFor(h)
		if policy == nil || policy.Action == bus.ResumeJobAction {
			continue // a stopped job is resumed only by a Command, and any other runs already
		}
		if !po.isDue(policy, h) {
			po.failureWaits = po.failureWaits || h.replica != nil && h.replica.Phase == replicas.Failed
			continue
		}
		d := pendingAction{policy.Action, h.task, h.replica, h.reasonFor(policy), po.isSettled(h)}
		switch {
		case po.isDelayed(d.action, h):
			delayed = append(delayed, d)
		case d.isSingle():
			single = append(single, d)
		default:
			return []pendingAction{d}
		}
	}
	if len(single) == 0 || slices.ContainsFunc(delayed, func(d pendingAction) bool { return !d.isSingle() }) {
		return nil
	}
	return append(single, delayed...)
}

// reasonFor returns the description, with the exit code that the policy is for where that is another container's.
func (pe *policyEvent) reasonFor(p *volcano.LifecyclePolicy) string {
	if p.ExitCode == nil || len(pe.exitCodes) == 0 || *p.ExitCode == pe.exitCodes[0] {
		return pe.description
	}
	return fmt.Sprintf("a container of pod %s has failed with exit code %d", pe.replica.Name, *p.ExitCode)
}

// policyFor returns the policy to apply, nil if there is none. For a pod that has failed through its eviction, policies
// for evictions come first, then policies for failures.
func (v *view) policyFor(h policyEvent) *volcano.LifecyclePolicy {
	policy := v.firstPolicyFor(h)
	if policy == nil && h.failed {
		h.event = bus.PodFailedEvent
		policy = v.firstPolicyFor(h)
	}
	return policy
}

// firstPolicyFor returns the first matching policy of the task, or else of the job.
func (v *view) firstPolicyFor(h policyEvent) *volcano.LifecyclePolicy {
	for _, list := range [][]volcano.LifecyclePolicy{v.tasks[h.task].Policies, v.job.Spec.Policies} {
		for policy := range pointers.To(list) {
			if isFor(policy, h) {
				return policy
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
func (po *policies) isDue(p *volcano.LifecyclePolicy, h policyEvent) bool {
	if p.Timeout != nil && h.event == bus.PodEvictedEvent && !h.failed {
		at := slot(h.task, h.replica.Index)
		if since, known := po.records.evicted[at]; known {
			h.since = since
		} else {
			if h.since.IsZero() {
				h.since = po.seen.Now
			}
			po.records.evicted[at], po.plan.StatusFirst = h.since, true
		}
	}
	if p.Timeout == nil || h.since.IsZero() {
		return true
	}
	due := h.since.Add(p.Timeout.Duration)
	if po.seen.Now.Before(due) {
		po.plan.DueBy(due)
		return false
	}
	return true
}

// policyEvents returns all current events, by task and pod. An event that a policy has acted on does not
// recur, as its pods are outdated.
func (v *view) policyEvents() []policyEvent {
	var out []policyEvent
	for r := range pointers.To(v.roster.Replicas) {
		at := slot(r.Group, r.Index)
		if _, waits := v.records.evicted[at]; waits && notStarted(r) ||
			r.Phase == replicas.Creating && r.Pod == nil && v.records.alive[at] {
			out = append(out, policyEvent{event: bus.PodEvictedEvent, task: r.Group, replica: r, description: evicted(r)})
		}
		out = append(out, podEvents(r)...)
	}
	out = append(out, v.partlyRunning()...)
	for name, task := range tasksIn(v.job) {
		if count := countOf(task); count > 0 && v.count(name, replicas.Succeeded) == count {
			out = append(out, policyEvent{event: bus.TaskCompletedEvent, task: name, since: v.lastEnd(name),
				description: "all pods of task " + name + " have succeeded"})
		}
		if n := v.restartsOfTask(name); n > 0 && n >= cmp.Or(task.MaxRetry, volcano.DefaultMaxRetry) {
			out = append(out, policyEvent{event: bus.TaskFailedEvent, task: name,
				description: fmt.Sprintf("containers of task %s were restarted %d times", name, n)})
		}
	}
	return out
}

func evicted(r *replicas.Replica) string { return "pod " + r.Name + " was evicted or deleted" }

func podEvents(r *replicas.Replica) []policyEvent {
	if r.UID() == "" {
		return nil
	}
	h := policyEvent{task: r.Group, replica: r}
	switch {
	case r.Phase == replicas.Failed:
		h.event, h.since, h.description = bus.PodFailedEvent,
			cmp.Or(replicas.EndOf(r.Pod), lastTransition(r.Pod)), failures.Of(r)
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
		h.event, h.since, h.description = bus.PodRunningEvent, cmp.Or(startOf(r.Pod), lastTransition(r.Pod)),
			"pod "+r.Name+" runs"
	default:
		h.event, h.since, h.description = bus.PodPendingEvent, r.Pod.CreationTimestamp.Time, "pod "+r.Name+" does not start"
	}
	return []policyEvent{h}
}

// partlyRunning returns the events of unschedulable pods while other pods of the job run.
func (v *view) partlyRunning() []policyEvent {
	if v.count("", replicas.Running) == 0 {
		return nil
	}
	for r := range pointers.To(v.roster.Replicas) {
		if r.UID() == "" || r.Phase != replicas.Creating {
			continue
		}
		if since := unschedulableSince(r.Pod); !since.IsZero() {
			return []policyEvent{{event: bus.JobUnknownEvent, task: r.Group, replica: r, since: since,
				description: "pod " + r.Name + " is unschedulable while others run"}}
		}
	}
	return nil
}

func (v *view) restartsOfTask(task string) (n int32) {
	members := v.roster.Group(task)
	for r := range pointers.To(members) {
		if r.UID() != "" && !r.Phase.Finished() {
			n += restartsOf(r.Pod)
		}
	}
	return n
}

// lastEnd returns when the task's last pod finished, as far as its pods still exist.
func (v *view) lastEnd(task string) (last time.Time) {
	members := v.roster.Group(task)
	for r := range pointers.To(members) {
		if r.UID() != "" {
			if at := replicas.EndOf(r.Pod); at.After(last) {
				last = at
			}
		}
	}
	return last
}

// startOf returns when the pod's first container started; zero if none has. The status of a container that was
// restarted once also has its previous run; if one was restarted more often, it is when the kubelet accepted the pod.
func startOf(pod *corev1.Pod) (first time.Time) {
	for status := range pointers.To(pod.Status.ContainerStatuses) {
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
			first = replicas.Earlier(first, at)
		}
	}
	return first
}

// lastTransition returns the time of the last change of the pod's conditions, or its creation time if it has none.
func lastTransition(pod *corev1.Pod) time.Time {
	return replicas.LastTransition(pod, pod.CreationTimestamp.Time)
}

// isDelayed reports whether the action is a restart that must wait, as others came before it, and then
// schedules a reconcile. Evictions say nothing about the program, and the last restart fails the job. A
// pod that is being deleted is not waited for, as its failure could not be acted on any more.
func (po *policies) isDelayed(action bus.Action, h policyEvent) bool {
	if !restarts(action) || h.event == bus.PodEvictedEvent || po.job.Status.RetryCount+1 >= maxRetry(po.job) {
		return false
	}
	if h.replica != nil && (h.replica.Pod == nil || replicas.IsTerminating(h.replica.Pod)) || po.isSettled(h) {
		return false
	}
	inARow := max(po.job.Status.RetryCount-settledAt(&po.job.Status), 0) + 1
	due := replicas.RestartDue(h.since, inARow, po.seen.Now)
	if !po.seen.Now.Before(due) {
		return false
	}
	po.plan.DueBy(due)
	po.failureWaits = true
	if h.replica != nil {
		po.delayed[h.replica.Name] = true
	}
	return true
}

// isSettled reports whether the pod that the event is about, or one of its task, has run for long.
func (v *view) isSettled(h policyEvent) bool {
	if h.replica != nil {
		return h.replica.UID() != "" && replicas.Settled(h.replica.Pod)
	}
	return slices.ContainsFunc(v.roster.Group(h.task), func(r replicas.Replica) bool {
		return r.UID() != "" && replicas.Settled(r.Pod)
	})
}

// awaitsRestart reports whether the replica's pod is one that a policy will restart later. Its end is not
// recorded: if it goes before that, it counts as lost, and is recreated.
func (po *policies) awaitsRestart(r *replicas.Replica) bool { return po.delayed[r.Name] }

// restarts reports whether the action restarts pods.
func restarts(action bus.Action) bool {
	switch action {
	case bus.RestartJobAction, bus.RestartTaskAction, bus.RestartPodAction, bus.RestartPartitionAction:
		return true
	}
	return false
}

// failures are the words for how a pod has failed.
var failures = replicas.FailureTexts{
	Gone: "pod %s has failed and is gone", Lost: "pod %s has failed: %s", Failed: "pod %s has failed with exit code %d",
}

// pendingAction is an action on a job, or on one of its tasks or pods, and the reason for it.
type pendingAction struct {
	action  bus.Action
	task    string
	replica *replicas.Replica
	why     string
	// settled says that a pod concerned has run for long.
	settled bool
}

// isSingle reports whether the action is on a task or a pod. If no pod is given, it is on the task.
func (p pendingAction) isSingle() bool {
	switch p.action {
	case bus.RestartTaskAction, bus.RestartPodAction, bus.RestartPartitionAction:
		return true
	}
	return false
}

// settledKey of status.controlledResources holds the retryCount that the job had when pods for which it was
// restarted had last run for long: the restarts since then are delayed.
const settledKey = "muster.dev/settled"

func settledAt(status *volcano.JobStatus) int32 {
	n, err := strconv.ParseInt(status.ControlledResources[settledKey], 10, 32)
	if err != nil {
		return 0 // there was none
	}
	return int32(n)
}
