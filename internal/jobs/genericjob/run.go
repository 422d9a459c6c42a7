package genericjob

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/replicas"
)

// Reasons of events, in addition to the reasons of conditions.
const (
	restartingReason = "Restarting"
	replacingReason  = "ReplacingLostPods"
)

// run advances a job that may have pods towards its spec.
func (p *planner) run() {
	p.resume()
	p.restart()
	p.plan.DeletePods(p.roster.Outdated())
	p.replace(p.lost)
	if p.seen.Admission.MayStart() {
		p.createPodGroup()
		if hasServices(p.job) {
			p.plan.CreateServices(p.roster, p.seen.Children, p.newService)
		}
		p.plan.CreateReplicas(p.roster, p.seen.Admission, p.newPod)
		jobs.JoinGangs(p.seen, kind, p.least(), p.plan)
	}
}

// restart restarts finished replicas that need it, once that is due. The status is written first: it makes their pods
// outdated, so nothing is lost if they are not deleted now, and nothing is counted twice.
func (p *planner) restart() {
	restarted, next := p.roster.Restart(p.seen.Now)
	p.plan.DueBy(next)
	if len(restarted) == 0 {
		return
	}
	p.plan.StatusFirst = true
	first := &restarted[0]
	what := first.Name + " has succeeded and will run again"
	if first.Phase == replicas.Failed {
		what = failures.Of(first)
	}
	if n := len(restarted) - 1; n > 0 {
		what = fmt.Sprintf("%s, and %d more", what, n)
	}
	p.plan.AddEvents(write.Warning(restartingReason,
		fmt.Sprintf("Restarting %d of %d replicas: %s", len(restarted), len(p.roster.Replicas), what)))
}

// replace deletes pods that were lost to a disruption. New ones are created once they are gone, and no
// restart is counted.
func (p *planner) replace(lost []*corev1.Pod) {
	lost = slices.DeleteFunc(slices.Clone(lost), replicas.IsTerminating)
	if len(lost) == 0 {
		return
	}
	p.plan.DeletePods(lost)
	p.plan.AddEvents(write.Warning(replacingReason, fmt.Sprintf(
		"Replacing %d of %d pods that were lost to a disruption, such as of their node; no restart is counted: %s first",
		len(lost), len(p.roster.Replicas), lost[0].Name)))
}
