package trainingjob

import (
	breezeml "github.com/musterhq/muster/api/breezeml/v1"
)

// mustStop reports whether the job has been running and may not run any more.
func (v *view) mustStop() bool {
	return v.job.Status.Stage == breezeml.StageRunning && (mistakeOf(v.job) != "" || suspended(v.job) || v.granted() == 0)
}

// hold deletes all pods of a job that may not run.
func (p *planner) hold() { p.plan.DeletePods(p.pods) }
