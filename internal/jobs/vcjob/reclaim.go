package vcjob

import (
	"slices"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// reclaimable counts, by task, the pods for which the job needs no quota any more in this admission: those that have
// ended for good, and those by which a task was scaled down, once they are gone.
//
// With a task of 8 pods that was admitted whole, has 3 ended pods and was scaled down to 6, it is 5: the other 3 run.
//
// The quota of the task that the queue resizes is given up by a resize, as long as the job needs as much as its minimum:
// a pod set that has given quota back otherwise is not resized any more.
func (pl *planner) reclaimable() map[string]int32 {
	out := map[string]int32{}
	for name, task := range pl.tasks {
		asked := countOf(task)
		if granted, ok := pl.seen.Admission.PodSets[name]; ok && pl.seen.Admission.Grant == jobs.Admitted {
			asked = granted.Asked
		}
		if unneeded := asked - pl.needed(name); unneeded > 0 {
			out[name] = unneeded
		}
	}
	if i := pl.resizableTask(); i >= 0 && !finished(pl.job) {
		if name := nameOf(pl.job, i); pl.needed(name) >= pl.leastWhileAdmitted(i) {
			delete(out, name)
		}
	}
	return out
}

// leastWhileAdmitted returns the fewest pods to which the queue may resize the task until the next admission.
func (pl *planner) leastWhileAdmitted(i int) int32 {
	task, granted := &pl.job.Spec.Tasks[i], pl.seen.Admission.PodSets[nameOf(pl.job, i)]
	if granted.ChoseCount() {
		return jobs.BoundsOf(granted.Template.Annotations, granted.Asked).Least
	}
	return max(1, min(leastOf(pl.job)[i], countOf(task)))
}

// needed returns for how many pods the task needs quota: those that run or will, and those beyond its size that are not
// gone yet.
func (pl *planner) needed(name string) int32 {
	task, members := pl.tasks[name], pl.roster.Group(name)
	needed := countOf(task) + pl.roster.InUse(name) - pl.roster.Alive(name)
	for i := range members {
		if members[i].Final() && pl.endedForGood(task, &members[i]) {
			needed--
		}
	}
	return needed
}

// endedForGood reports whether the pod, which has ended, is not run again in this admission.
//
// Where any policy restarts pods, a gang keeps the quota of its ended pods, since it must be able to run as a whole again.
// A job that can run with fewer pods than it has gives up that of pods that have succeeded. If it is restarted as a whole
// with too little quota left, it queues again.
func (pl *planner) endedForGood(task *volcano.TaskSpec, r *replicas.Replica) bool {
	policies := slices.Concat(task.Policies, pl.job.Spec.Policies)
	if finished(pl.job) || !slices.ContainsFunc(policies, func(p volcano.LifecyclePolicy) bool { return restarts(p.Action) }) {
		return true
	}
	return r.Phase == replicas.Succeeded && minAvailable(pl.job) < totalOf(pl.job) && !slices.ContainsFunc(policies, restartsCompleted)
}

// restartsCompleted reports whether the policy may restart the pods of a task because all of them have succeeded.
func restartsCompleted(p volcano.LifecyclePolicy) bool {
	return restarts(p.Action) && slices.ContainsFunc(append([]bus.Event{p.Event}, p.Events...), func(e bus.Event) bool {
		return e == bus.TaskCompletedEvent || e == bus.AnyEvent
	})
}

// lacksMinimum reports whether the job, which runs no pods, has given quota back and has too little left to run as many
// as it must.
func (pl *planner) lacksMinimum() bool {
	if pl.seen.Admission.Grant != jobs.Admitted || pl.roster.Active() {
		return false
	}
	var can int32
	gaveBack := false
	for name := range pl.tasks {
		granted := pl.seen.Admission.PodSets[name]
		gaveBack = gaveBack || granted.Left < granted.Count
		can += min(pl.limit(name), pl.needed(name))
	}
	ended := pl.count("", replicas.Succeeded, replicas.Failed)
	return gaveBack && can+ended < min(minAvailable(pl.job), totalOf(pl.job))
}
