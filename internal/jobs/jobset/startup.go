package jobset

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// dependenciesMet reports whether every replicated job that rj depends on has reached the required state. Until then,
// no Jobs of rj are created.
func (p *planner) dependenciesMet(rj *jobset.ReplicatedJob) bool {
	for _, dependency := range rj.DependsOn {
		replicas := p.replicas(dependency.Name)
		c := p.counts(dependency.Name)
		switch dependency.Status {
		case jobset.DependencyComplete:
			if c.Succeeded < replicas {
				return false
			}
		case jobset.DependencyReady:
			if c.Ready+c.Succeeded+c.Failed < replicas {
				return false
			}
		}
	}
	return true
}

// readiness reports whether the pods of all replicated jobs that may start are ready, and, if not, which of those that
// have to wait for others began last. Pods of a replicated job that still waits do not exist yet, and are not missing.
func (p *planner) readiness() (ready bool, last *jobs.Stage) {
	ready = true
	for i := range p.js.Spec.ReplicatedJobs {
		rj := &p.js.Spec.ReplicatedJobs[i]
		if i > 0 && inOrder(p.js) && !p.hasStarted(&p.js.Spec.ReplicatedJobs[i-1]) {
			break
		}
		if !p.dependenciesMet(rj) || p.isEnoughReady(rj) {
			continue
		}
		ready = false
		if i > 0 && inOrder(p.js) || len(rj.DependsOn) > 0 {
			last = jobs.LastStage(last, &jobs.Stage{Name: rj.Name, Since: p.startOf(rj)})
		}
	}
	return ready, last
}

// startOf returns when the first Job of the replicated job was started, or started again after an eviction; zero if that
// is not known yet.
func (p *planner) startOf(rj *jobset.ReplicatedJob) (first time.Time) {
	for _, job := range p.children.current() {
		at := job.Status.StartTime
		if job.Labels[jobset.ReplicatedJobNameKey] == rj.Name && at != nil && (first.IsZero() || at.Time.Before(first)) {
			first = at.Time
		}
	}
	return first
}

// hasStarted reports whether every Job of the replicated job was ready, or has ended.
func (p *planner) hasStarted(rj *jobset.ReplicatedJob) bool {
	c := p.counts(rj.Name)
	return c.Ready+c.Succeeded+c.Failed >= rj.Replicas
}

// waitsInOrder reports whether the replicated jobs after rj must wait for it to start, and if so says it in the status.
// Once all have started, the status says so until they start anew, after a restart or an eviction: a Job that has lost a
// pod, or is about to fail, is no new startup.
func (p *planner) waitsInOrder(rj *jobset.ReplicatedJob) bool {
	if !inOrder(p.js) || p.held() || p.hasStarted(rj) {
		return false
	}
	if meta.IsStatusConditionTrue(p.js.Status.Conditions, string(jobset.JobSetStartupPolicyCompleted)) && slices.ContainsFunc(p.children.active, isRunning) {
		return true
	}
	p.setCondition(jobset.JobSetStartupPolicyInProgress, metav1.ConditionTrue,
		jobset.InOrderStartupPolicyInProgressReason, jobset.InOrderStartupPolicyInProgressMessage, corev1.EventTypeNormal)
	p.endCondition(jobset.JobSetStartupPolicyCompleted)
	return true
}

// endStartup says in the status that all replicated jobs have started in order.
func (p *planner) endStartup() {
	if !inOrder(p.js) || p.held() {
		return
	}
	p.setCondition(jobset.JobSetStartupPolicyCompleted, metav1.ConditionTrue,
		jobset.InOrderStartupPolicyCompletedReason, jobset.InOrderStartupPolicyCompletedMessage, corev1.EventTypeNormal)
	p.endCondition(jobset.JobSetStartupPolicyInProgress)
}

// endCondition sets a condition of the startup policy to False because the other one has become True. Reason and
// message stay unchanged, as in the JobSet controller.
func (p *planner) endCondition(kind jobset.JobSetConditionType) {
	for i := range p.js.Status.Conditions {
		if c := &p.js.Status.Conditions[i]; c.Type == string(kind) && c.Status == metav1.ConditionTrue {
			c.Status = metav1.ConditionFalse
			c.LastTransitionTime = metav1.NewTime(p.seen.Now)
		}
	}
}

func inOrder(js *jobset.JobSet) bool {
	return js.Spec.StartupPolicy != nil && js.Spec.StartupPolicy.StartupPolicyOrder == jobset.InOrder
}

func (p *planner) replicas(name string) int32 {
	for _, rj := range p.js.Spec.ReplicatedJobs {
		if rj.Name == name {
			return rj.Replicas
		}
	}
	return 0
}
