package trainingjob

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// requeueStuck takes a job out of the queue for the cooldown if some of its pods have been pending for too long, and
// reports whether it did: others can use its quota, and waiting does not solve the problem. While pods are missing, it
// is not known yet whether they would run.
func (p *planner) requeueStuck() bool {
	s := &p.job.Status
	stuck := p.pending()
	switch {
	case stuck == nil:
		s.RequeueTime = nil
		return false
	case s.RequeueTime == nil:
		until := metav1.NewTime(p.now.Add(p.settings.PendingTimeout))
		s.RequeueTime = &until
	}
	if p.seen.Now.Before(s.RequeueTime.Time) {
		p.plan.DueBy(s.RequeueTime.Time)
		return false
	}
	if len(p.roster.Missing()) > 0 {
		return false
	}
	until := metav1.NewTime(p.now.Add(p.settings.Cooldown))
	p.addEvent(jobs.Warning(breezeml.RequeueCooldownReason, fmt.Sprintf(
		"Pods have been pending for more than %s, %s among them: the job gives up its quota and is queued again at %s. The events of that pod say why",
		p.settings.PendingTimeout, stuck.Name, until.UTC().Format("2006-01-02 15:04:05 UTC"))))
	p.setStage(breezeml.StageRequeueCooldown, 0)
	s.CooldownTime = &until
	p.plan.StatusFirst = true
	p.plan.DueBy(until.Time)
	p.plan.DeletePods(p.pods)
	return true
}

// pending returns a worker whose pod exists and does not run, because it has not started or is terminating. Nil if
// there is none.
func (p *planner) pending() *replicas.Replica {
	for i := range p.roster.Replicas {
		r := &p.roster.Replicas[i]
		if r.Pod != nil && (r.Phase == replicas.Creating || r.Phase == replicas.Pending || replicas.IsTerminating(r.Pod)) {
			return r
		}
	}
	return nil
}
