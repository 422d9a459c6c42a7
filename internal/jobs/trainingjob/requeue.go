package trainingjob

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/replicas"
)

// requeueStuck acts on pods that have been pending for too long. If enough others run, the job goes on with these.
// Otherwise it leaves the queue for the cooldown, which requeueStuck reports: others can use its quota, and waiting
// does not solve the problem. While pods are missing, it is not known yet whether they would run.
func (p *planner) requeueStuck() bool {
	s := &p.job.Status
	stuck := p.roster.First(isPending)
	switch {
	case stuck == nil:
		s.RequeueTime = nil
		p.status.forgetLimit()
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
	why := fmt.Sprintf("Pods have been pending for more than %s, %s among them: %s", p.settings.PendingTimeout, stuck.Name,
		whyPending(stuck.Pod))
	if p.goOnWith(func(r *replicas.Replica) bool { return !isPending(r) }, why, time.Time{}) {
		return false
	}
	until := metav1.NewTime(p.now.Add(p.settings.Cooldown))
	p.status.addEvent(write.Warning(breezeml.RequeueCooldownReason, fmt.Sprintf(
		"%s. The job gives up its quota and is queued again at %s", strings.TrimSuffix(why, "."),
		until.UTC().Format(timeFormat))))
	p.status.setStage(breezeml.StageRequeueCooldown, 0)
	// The pods are deleted, and events expire before the cooldown ends.
	p.status.setCondition(breezeml.JobRunning, false, breezeml.StoppedByCooldownReason, why)
	s.CooldownTime = &until
	p.plan.StatusFirst = true
	p.plan.DueBy(until.Time)
	p.plan.DeletePods(p.pods)
	return true
}

// whyPending returns why the pod does not run, as far as its status says it.
func whyPending(pod *corev1.Pod) string {
	scheduled := replicas.Condition(pod, corev1.PodScheduled)
	if scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Message != "" {
		return scheduled.Message
	}
	switch {
	case replicas.IsTerminating(pod):
		return "it is being deleted"
	case pod.Spec.NodeName != "":
		return fmt.Sprintf("it has not started on node %s, and its events say why", pod.Spec.NodeName)
	}
	return "it is not scheduled, and its events say why"
}

// isPending reports whether the worker's pod exists and does not run, because it has not started or is terminating.
func isPending(r *replicas.Replica) bool {
	return r.Pod != nil && (r.Phase == replicas.Creating || r.Phase == replicas.Pending || replicas.IsTerminating(r.Pod))
}
