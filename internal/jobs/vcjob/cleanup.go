package vcjob

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// cleanUp stops what still runs of a job that has finished, and finally deletes the job.
func (p *planner) cleanUp() {
	p.deleteUnfinished()
	ended, ttl := p.job.Status.State.LastTransitionTime.Time, p.job.Spec.TTLSecondsAfterFinished
	p.plan.Expire(p.seen.Job, ended, ttl, p.seen.Now, metav1.DeletePropagationBackground)
}

// deleteUnfinished deletes all pods that have not finished.
func (p *planner) deleteUnfinished() { p.plan.DeletePods(p.roster.Pods(true)) }
