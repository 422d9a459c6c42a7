package trainingjob

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// end ends the job. The status is written first, because what follows from it cannot be undone.
func (l *planner) end(o *jobs.Outcome) {
	l.plan.StatusFirst = true
	condition, reason, event := breezeml.JobSucceeded, breezeml.SucceededReason, corev1.EventTypeNormal
	if !o.Succeeded {
		condition, reason, event = breezeml.JobFailed, breezeml.FailedReason, corev1.EventTypeWarning
	}
	l.setCondition(condition, true, reason, o.Message)
	l.addEvent(jobs.Event{Type: event, Reason: reason, Message: o.Message})
	s := &l.job.Status
	l.setStage(breezeml.StageCompleted, 0)
	s.CooldownTime = nil
	s.CompletionTime, s.ExecStatus.CompletionTime = l.now.DeepCopy(), l.now.DeepCopy()
}

// cleanUp deletes the pods that the policy selects, with their Services, and pods that must stop because the queue
// wants their quota back. Finally it deletes the job.
func (l *planner) cleanUp() {
	policy := l.job.Spec.RunPolicy.CleanPodPolicy
	stays := map[int32]bool{}
	for _, pod := range l.pods {
		if policy == breezeml.CleanPodNone && l.seen.Admission.MayRun() || policy != breezeml.CleanPodAll && policy != "" && replicas.IsFinished(pod) {
			if index, ok := replicas.IndexOf(l.job.Name, worker, pod.Name); ok {
				stays[index] = true
			}
			continue
		}
		l.plan.DeletePods([]*corev1.Pod{pod})
	}
	l.deleteServices(func(index int32) bool { return !stays[index] })
	l.expire()
}

// expire deletes the job once its time to live has passed.
func (l *planner) expire() {
	ended, ttl := l.job.Status.CompletionTime, l.job.Spec.RunPolicy.TTLSecondsAfterFinished
	if ended == nil || ttl == nil {
		return
	}
	until := ended.Add(time.Duration(*ttl) * time.Second)
	if l.seen.Now.Before(until) || l.plan.StatusFirst {
		l.plan.DueBy(until)
		return
	}
	l.plan.Writes = append(l.plan.Writes, jobs.Delete(l.seen.Job, metav1.DeletePropagationBackground))
}
