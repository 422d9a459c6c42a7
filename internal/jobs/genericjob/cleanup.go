package genericjob

import (
	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// cleanUp deletes the pods that the clean-up policy selects, and the pods that may no longer run because the job lost
// its quota or has used up its time.
func (p *planner) cleanUp() {
	switch {
	case p.job.Spec.CleanUpPolicy == tensorstack.CleanUpAll:
		p.plan.DeletePods(p.roster.Pods(false))
	case p.job.Spec.CleanUpPolicy == tensorstack.CleanUpUnfinished, !p.seen.Admission.MayRun():
		p.plan.DeletePods(p.roster.Pods(true))
	case p.roster.Active() && p.timeLimitReached():
		if late := p.roster.Pods(true); len(late) > 0 {
			p.plan.DeletePods(late)
			last := len(p.plan.Writes) - 1
			p.plan.Writes[last] = p.plan.Writes[last].WithEvent(p.limitEvent(stoppedMessage))
		}
	default:
		p.plan.DeletePods(p.withoutQuota())
	}
}

// withoutQuota returns the unfinished pods that run on after the end and that the job has no quota for any more: the
// queue has given it to other jobs, as it does with an elastic type that runs. As then, the highest ranks go first.
func (v *view) withoutQuota() []*corev1.Pod {
	var out []*corev1.Pod
	for spec := range pointers.To(v.job.Spec.ReplicaSpecs) {
		granted, queued := v.seen.Admission.PodSets[spec.Type]
		if !queued || !granted.Bounds(boundsOf(spec)).Elastic {
			continue
		}
		var live []*corev1.Pod
		for _, r := range v.roster.Group(spec.Type) {
			if r.Pod != nil && replicas.IsLive(r.Pod) {
				live = append(live, r.Pod)
			}
		}
		out = append(out, live[min(len(live), int(granted.Count)):]...)
	}
	return out
}
