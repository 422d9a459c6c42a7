package genericjob

import (
	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// cleanUp deletes the pods that the clean-up policy selects, and those that may no longer run because
// the job lost its quota or has used up its time.
func (pl *planner) cleanUp() {
	switch {
	case pl.job.Spec.CleanUpPolicy == tensorstack.CleanUpAll:
		pl.plan.DeletePods(pl.roster.Pods(false))
	case pl.job.Spec.CleanUpPolicy == tensorstack.CleanUpUnfinished, !pl.seen.Admission.MayRun():
		pl.plan.DeletePods(pl.roster.Pods(true))
	case pl.roster.Active() && pl.timeLimitReached():
		if late := pl.roster.Pods(true); len(late) > 0 {
			pl.plan.DeletePods(late)
			last := len(pl.plan.Writes) - 1
			pl.plan.Writes[last] = pl.plan.Writes[last].WithEvent(jobs.Warning(maxDurationReason, stoppedMessage))
		}
	default:
		pl.plan.DeletePods(pl.withoutQuota())
	}
}

// withoutQuota returns the unfinished pods that run on after the end and that the job has no quota for any more: the
// queue has given it to other jobs, as it does with an elastic type that runs. As then, the highest ranks go first.
func (pl *planner) withoutQuota() []*corev1.Pod {
	var out []*corev1.Pod
	for i := range pl.job.Spec.ReplicaSpecs {
		spec := &pl.job.Spec.ReplicaSpecs[i]
		granted, queued := pl.seen.Admission.PodSets[spec.Type]
		if !queued || !granted.Bounds(boundsOf(spec)).Elastic {
			continue
		}
		var live []*corev1.Pod
		for _, r := range pl.roster.Group(spec.Type) {
			if r.Pod != nil && replicas.IsLive(r.Pod) {
				live = append(live, r.Pod)
			}
		}
		out = append(out, live[min(len(live), int(granted.Count)):]...)
	}
	return out
}
