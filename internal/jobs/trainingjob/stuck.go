package trainingjob

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// giveUpStuck takes a job out of the queue for a while, and reports whether it did, if pods of it have been pending for
// too long: what it holds others can use, and whatever keeps the pods from running is not mended by waiting. As long as
// some pods are not there at all it is not known yet whether they would run.
func (l *look) giveUpStuck() bool {
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
	l.tell(jobs.Warning(breezeml.RequeueCooldownReason, fmt.Sprintf(
		"Pods are pending for more than %s, %s among them: the job gives up its place and queues again at %s. Look at that pod's events for why",
		l.settings.PendingTimeout, stuck.Name, until.UTC().Format("2006-01-02 15:04:05 UTC"))))
	l.enter(breezeml.StageRequeueCooldown, 0)
	s.CooldownTime = &until
	l.plan.StatusFirst = true
	l.plan.DueBy(until.Time)
	l.plan.DeletePods(l.pods)
	return true
}

// pending is a worker whose pod is there and does not run: it has not begun, or it is going. Nil if there is none.
func (l *look) pending() *replicas.Replica {
	for i := range l.roster.Replicas {
		r := &l.roster.Replicas[i]
		if r.Pod != nil && (r.Phase == replicas.Creating || r.Phase == replicas.Pending || replicas.IsGoing(r.Pod)) {
			return r
		}
	}
	return nil
}
