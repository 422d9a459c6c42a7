package trainingjob

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	why := fmt.Sprintf("Pods have been pending for more than %s, %s among them: %s", p.settings.PendingTimeout, stuck.Name, whyPending(stuck.Pod))
	p.addEvent(jobs.Warning(breezeml.RequeueCooldownReason, fmt.Sprintf(
		"%s. The job gives up its quota and is queued again at %s", strings.TrimSuffix(why, "."), until.UTC().Format("2006-01-02 15:04:05 UTC"))))
	p.setStage(breezeml.StageRequeueCooldown, 0)
	// The pods are deleted, and events expire before the cooldown ends.
	p.setCondition(breezeml.JobRunning, false, breezeml.StoppedByCooldownReason, why)
	s.CooldownTime = &until
	p.plan.StatusFirst = true
	p.plan.DueBy(until.Time)
	p.plan.DeletePods(p.pods)
	return true
}

// whyPending returns why the pod does not run, as far as its status says it.
func whyPending(pod *corev1.Pod) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	switch {
	case replicas.IsTerminating(pod):
		return "it is being deleted"
	case pod.Spec.NodeName != "":
		return fmt.Sprintf("it has not started on node %s, and its events say why", pod.Spec.NodeName)
	}
	return "it is not scheduled, and its events say why"
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
