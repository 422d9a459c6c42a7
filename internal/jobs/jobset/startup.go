package jobset

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
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

// waitsInOrder reports whether the replicated jobs after rj must wait for it to start, and if so says it in the status.
func (p *planner) waitsInOrder(rj *jobset.ReplicatedJob) bool {
	c := p.counts(rj.Name)
	if !inOrder(p.js) || p.held() || c.Ready+c.Succeeded+c.Failed >= rj.Replicas {
		return false
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
