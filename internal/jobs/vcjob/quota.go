package vcjob

import (
	"fmt"
	"slices"
	"strings"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// reclaimable counts, by task, the pods for which the job needs no quota any more in this admission: pods that have
// ended for good, and pods by which a task was scaled down, once they are gone.
//
// With a task of 8 pods that was admitted whole, has 3 ended pods and was scaled down to 6, it is 5: 3 run.
//
// The quota of the task that the queue resizes is given up by a resize, as long as the job needs as much as its
// minimum: a pod set that has given quota back otherwise is not resized any more.
func (s *sizes) reclaimable() map[string]int32 {
	out := map[string]int32{}
	for name, task := range s.tasks {
		asked := countOf(task)
		if granted, ok := s.seen.Admission.PodSets[name]; ok && s.seen.Admission.Grant == jobs.Admitted {
			asked = granted.Asked
		}
		if unneeded := asked - s.needed(name); unneeded > 0 {
			out[name] = unneeded
		}
	}
	if i := s.resizableTask(); i >= 0 && !hasOutcome(s.job) {
		if name := nameOf(s.job, i); s.needed(name) >= s.leastWhileAdmitted(i) {
			delete(out, name)
		}
	}
	return out
}

// leastWhileAdmitted returns the fewest pods to which the queue may resize the task until the next admission.
func (s *sizes) leastWhileAdmitted(i int) int32 {
	task, granted := &s.job.Spec.Tasks[i], s.seen.Admission.PodSets[nameOf(s.job, i)]
	if granted.ChoseCount() {
		return jobs.BoundsOf(granted.Template.Annotations, granted.Asked).Least
	}
	return max(1, min(leastOf(s.job)[i], countOf(task)))
}

// needed returns for how many pods the task needs quota: pods that run or will, and pods beyond its size that are not
// gone yet.
func (s *sizes) needed(name string) int32 {
	task, members := s.tasks[name], s.roster.Group(name)
	needed := countOf(task) + s.roster.InUse(name) - s.roster.Alive(name)
	for r := range pointers.To(members) {
		if r.Final() && s.endedForGood(task, r) {
			needed--
		}
	}
	return needed
}

// endedForGood reports whether the pod, which has ended, is not run again in this admission.
//
// Where any policy restarts pods, a gang keeps the quota of its ended pods, since it must be able to run as a whole
// again. A job that can run with fewer pods than it has gives up that of pods that have succeeded. If it is restarted
// as a whole with too little quota left, it queues again.
func (s *sizes) endedForGood(task *volcano.TaskSpec, r *replicas.Replica) bool {
	policies := slices.Concat(task.Policies, s.job.Spec.Policies)
	if hasOutcome(s.job) ||
		!slices.ContainsFunc(policies, func(p volcano.LifecyclePolicy) bool { return restarts(p.Action) }) {
		return true
	}
	return r.Phase == replicas.Succeeded && minAvailable(s.job) < totalOf(s.job) &&
		!slices.ContainsFunc(policies, restartsCompleted)
}

// restartsCompleted reports whether the policy may restart the pods of a task because all of them have succeeded.
func restartsCompleted(p volcano.LifecyclePolicy) bool {
	return restarts(p.Action) && slices.ContainsFunc(append([]bus.Event{p.Event}, p.Events...), func(e bus.Event) bool {
		return e == bus.TaskCompletedEvent || e == bus.AnyEvent
	})
}

// lacksMinimum reports whether the job, which runs no pods, has given quota back and has too little left to run as many
// as it must.
func (s *sizes) lacksMinimum() bool {
	if s.seen.Admission.Grant != jobs.Admitted || s.roster.Active() {
		return false
	}
	var can int32
	gaveBack := false
	for name := range s.tasks {
		granted := s.seen.Admission.PodSets[name]
		gaveBack = gaveBack || granted.Left < granted.Count
		can += min(s.limit(name), s.needed(name))
	}
	ended := s.count("", replicas.Succeeded, replicas.Failed)
	return gaveBack && can+ended < min(minAvailable(s.job), totalOf(s.job))
}

const (
	// admittedAnewReason is the reason of a job that gives its quota back to be admitted with changed tasks.
	admittedAnewReason = "AdmittedAnew"
	// taskWithoutQuotaReason is the reason of a job with a task that must wait for that, and of the event.
	taskWithoutQuotaReason = "TaskWithoutQuota"
)

// taskWithoutQuota returns a task that has pods to run and no quota for any of them, "" if there is none: it had none
// at admission, or has given back all. A reservation cannot be extended.
func (s *sizes) taskWithoutQuota() string {
	if s.seen.Admission.Grant != jobs.Admitted {
		return ""
	}
	for _, r := range s.roster.Missing() {
		if !s.hasQuota(r.Group) && s.mayStart(s.tasks[r.Group]) {
			return r.Group
		}
	}
	return ""
}

// noteTaskWithoutQuota reports what a task without quota waits for. Running pods are not stopped for it.
func (rep *reporter) noteTaskWithoutQuota() {
	task := rep.sizes.taskWithoutQuota()
	if task == "" {
		return
	}
	had := "Task " + task + " had no pods when the job was admitted"
	switch granted := rep.seen.Admission.PodSets[task]; {
	case granted.Count > 0:
		had = "Task " + task + " had ended or was scaled to no pods, and gave its quota back"
	case granted.Asked > 0:
		had = rep.sizes.admittedWithout(task)
	}
	state, before := &rep.job.Status.State, &rep.seen.Job.Status.State
	state.Reason = taskWithoutQuotaReason
	state.Message = had + ": they start once the others have ended, or when the job is aborted and resumed"
	if before.Reason != state.Reason || before.Message != state.Message {
		rep.plan.AddEvents(write.Warning(taskWithoutQuotaReason, state.Message))
	}
}

// admittedWithout says that the job was admitted without pods of the task and of other tasks that it could do without:
// none of these pods fitted.
func (s *sizes) admittedWithout(task string) string {
	tasks := []string{task}
	for name := range tasksIn(s.job) {
		if granted, asked := s.seen.Admission.PodSets[name]; asked && name != task && granted.Asked > 0 &&
			granted.Count == 0 && s.roster.InUse(name) == 0 && s.needed(name) > 0 {
			tasks = append(tasks, name)
		}
	}
	if len(tasks) == 1 {
		return fmt.Sprintf("Task %s got no quota for its pods when the job was admitted, as they did not fit beside the others", task)
	}
	return fmt.Sprintf("Tasks %s got no quota for their pods when the job was admitted, as they did not fit beside the others",
		strings.Join(tasks, ", "))
}

// requeue gives the quota back if all other pods of the job have finished, so that the job is admitted with its current
// tasks, and reports whether it did. So does a job that begins again and has given back quota that it needs.
func (p *planner) requeue() bool {
	task := p.sizes.taskWithoutQuota()
	switch {
	case task != "" &&
		p.roster.All(func(r *replicas.Replica) bool { return r.Phase.Finished() || !p.sizes.hasQuota(r.Group) }):
		p.status.setPhase(volcano.Pending, admittedAnewReason,
			fmt.Sprintf("The job gives up its quota, and queues again with the pods of task %s", task))
	case p.sizes.lacksMinimum():
		p.status.setPhase(volcano.Pending, admittedAnewReason,
			"The job gives up its quota, and queues again: it has given part of it back, and the rest is for fewer pods than must run")
	default:
		return false
	}
	return true
}

// hasQuota reports whether quota is held for any pods of the task.
func (s *sizes) hasQuota(task string) bool { return s.seen.Admission.PodSets[task].Left > 0 }
