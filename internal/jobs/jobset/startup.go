package jobset

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// dependenciesMet reports whether every replicated job that rj depends on has reached the required state. Until then,
// no Jobs of rj are created.
func (a *planner) dependenciesMet(rj *jobset.ReplicatedJob) bool {
	for _, dependency := range rj.DependsOn {
		replicas := a.replicas(dependency.Name)
		c := a.counts(dependency.Name)
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
func (a *planner) waitsInOrder(rj *jobset.ReplicatedJob) bool {
	c := a.counts(rj.Name)
	if !inOrder(a.js) || a.held() || c.Ready+c.Succeeded+c.Failed >= rj.Replicas {
		return false
	}
	a.setCondition(jobset.JobSetStartupPolicyInProgress, metav1.ConditionTrue,
		jobset.InOrderStartupPolicyInProgressReason, jobset.InOrderStartupPolicyInProgressMessage, corev1.EventTypeNormal)
	a.endCondition(jobset.JobSetStartupPolicyCompleted)
	return true
}

// endStartup says in the status that all replicated jobs have started in order.
func (a *planner) endStartup() {
	if !inOrder(a.js) || a.held() {
		return
	}
	a.setCondition(jobset.JobSetStartupPolicyCompleted, metav1.ConditionTrue,
		jobset.InOrderStartupPolicyCompletedReason, jobset.InOrderStartupPolicyCompletedMessage, corev1.EventTypeNormal)
	a.endCondition(jobset.JobSetStartupPolicyInProgress)
}

// endCondition sets a condition of the startup policy to False because the other one has become True. Reason and
// message stay unchanged, as in the JobSet controller.
func (a *planner) endCondition(kind jobset.JobSetConditionType) {
	for i := range a.js.Status.Conditions {
		if c := &a.js.Status.Conditions[i]; c.Type == string(kind) && c.Status == metav1.ConditionTrue {
			c.Status = metav1.ConditionFalse
			c.LastTransitionTime = metav1.NewTime(a.seen.Now)
		}
	}
}

func inOrder(js *jobset.JobSet) bool {
	return js.Spec.StartupPolicy != nil && js.Spec.StartupPolicy.StartupPolicyOrder == jobset.InOrder
}

func (a *planner) replicas(name string) int32 {
	for _, rj := range a.js.Spec.ReplicatedJobs {
		if rj.Name == name {
			return rj.Replicas
		}
	}
	return 0
}
