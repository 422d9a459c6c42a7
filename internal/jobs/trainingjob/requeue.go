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
func (l *planner) requeueStuck() bool {
	s := &l.job.Status
	stuck := l.pending()
	switch {
	case stuck == nil:
		s.RequeueTime = nil
		return false
	case s.RequeueTime == nil:
		until := metav1.NewTime(l.now.Add(l.settings.PendingTimeout))
		s.RequeueTime = &until
	}
	if l.seen.Now.Before(s.RequeueTime.Time) {
		l.plan.DueBy(s.RequeueTime.Time)
		return false
	}
	if len(l.roster.Missing()) > 0 {
		return false
	}
	until := metav1.NewTime(l.now.Add(l.settings.Cooldown))
	l.addEvent(jobs.Warning(breezeml.RequeueCooldownReason, fmt.Sprintf(
		"Pods have been pending for more than %s, %s among them: the job gives up its quota and is queued again at %s. The events of that pod say why",
		l.settings.PendingTimeout, stuck.Name, until.UTC().Format("2006-01-02 15:04:05 UTC"))))
	l.setStage(breezeml.StageRequeueCooldown, 0)
	s.CooldownTime = &until
	l.plan.StatusFirst = true
	l.plan.DueBy(until.Time)
	l.plan.DeletePods(l.pods)
	return true
}

// pending returns a worker whose pod exists and does not run, because it has not started or is terminating. Nil if
// there is none.
func (l *planner) pending() *replicas.Replica {
	for i := range l.roster.Replicas {
		r := &l.roster.Replicas[i]
		if r.Pod != nil && (r.Phase == replicas.Creating || r.Phase == replicas.Pending || replicas.IsTerminating(r.Pod)) {
			return r
		}
	}
	return nil
}
