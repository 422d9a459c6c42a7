package genericjob

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
	"github.com/musterhq/muster/internal/workload"
)

// conditionOrder is the order in which conditions are listed.
var conditionOrder = []tensorstack.JobConditionType{
	tensorstack.JobInitialized, tensorstack.JobRunning, tensorstack.JobFailed,
	tensorstack.JobCompleted, tensorstack.JobReplicaFailure, tensorstack.JobPaused,
}

// conditionState is the content of a condition.
type conditionState struct {
	status          bool
	reason, message string
}

// conditions returns the conditions of a job that has not finished, or finishes now.
func (v *view) conditions(outcome *jobs.Outcome, running bool) map[tensorstack.JobConditionType]conditionState {
	out := map[tensorstack.JobConditionType]conditionState{
		tensorstack.JobInitialized:    {true, tensorstack.NoReason, tensorstack.InitializedMessage},
		tensorstack.JobRunning:        {false, tensorstack.PodsNotRunningReason, tensorstack.NotRunningMessage},
		tensorstack.JobFailed:         {false, tensorstack.NoReason, tensorstack.NotEndedMessage},
		tensorstack.JobCompleted:      {false, tensorstack.NoReason, tensorstack.NotEndedMessage},
		tensorstack.JobReplicaFailure: v.replicaFailure(running),
		tensorstack.JobPaused:         v.pausedNow(),
	}
	switch {
	case outcome != nil:
		reason := outcome.Reason(tensorstack.SucceededReason, tensorstack.FailedReason)
		out[tensorstack.JobRunning] = conditionState{false, reason, outcome.Message}
		out[tensorstack.JobFailed] = conditionState{!outcome.Succeeded, reason, outcome.Message}
		out[tensorstack.JobCompleted] = conditionState{true, reason, outcome.Message}
	case paused(v.job):
		out[tensorstack.JobRunning] = conditionState{false, tensorstack.PausedReason, tensorstack.PausedMessage}
	case running:
		out[tensorstack.JobRunning] = conditionState{true, tensorstack.NoReason, tensorstack.RunningMessage}
	case v.seen.RefusedObjects.Message() != "":
		out[tensorstack.JobRunning] = conditionState{false, muster.RefusedReason, v.seen.RefusedObjects.Message()}
	}
	return out
}

// replicaFailure returns the condition ReplicaFailure: it is True from when a replica fails until all replicas run
// again.
func (v *view) replicaFailure(running bool) conditionState {
	before := condition(v.job, tensorstack.JobReplicaFailure)
	switch {
	case v.failed != nil && v.failed.Pod != nil:
		return conditionState{true, tensorstack.ErrorInPodReason, failures.Of(v.failed)}
	case before != nil && before.Status == metav1.ConditionTrue && (!running || v.failed != nil):
		return conditionState{true, before.Reason, before.Message}
	case v.failed != nil:
		return conditionState{true, tensorstack.ErrorInPodReason, failures.Of(v.failed)}
	}
	return conditionState{false, tensorstack.NoReason, tensorstack.RunningMessage}
}

// pausedNow returns the condition Paused, whose reason also records an earlier pause.
func (v *view) pausedNow() conditionState {
	switch {
	case paused(v.job):
		return conditionState{true, tensorstack.PausedReason, tensorstack.PausedMessage}
	case wasPaused(v.job):
		return conditionState{false, tensorstack.ResumedReason, tensorstack.NotPausedMessage}
	}
	return conditionState{false, tensorstack.NoReason, tensorstack.NotPausedMessage}
}

// messageBytes bounds the message of a condition: it may have a rule that names all replicas, or what a
// pod says about its failure, and a status of any size would be refused.
const messageBytes = 4096

// setConditions writes the conditions into the status. lastTransitionTime changes only with the status of a condition.
func (v *view) setConditions(states map[tensorstack.JobConditionType]conditionState) {
	out := make([]tensorstack.JobCondition, 0, len(conditionOrder))
	for _, kind := range conditionOrder {
		s := states[kind]
		c := tensorstack.JobCondition{Type: kind, Status: metav1.ConditionFalse, Reason: s.reason,
			LastTransitionTime: metav1.NewTime(v.seen.Now)}
		c.Message = workload.Cut(s.message, messageBytes)
		if s.status {
			c.Status = metav1.ConditionTrue
		}
		if before := condition(v.job, kind); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
		out = append(out, c)
	}
	v.job.Status.Conditions = out
}

func condition(job *tensorstack.GenericJob, kind tensorstack.JobConditionType) *tensorstack.JobCondition {
	return pointers.First(job.Status.Conditions, func(c *tensorstack.JobCondition) bool { return c.Type == kind })
}

func isTrue(job *tensorstack.GenericJob, kind tensorstack.JobConditionType) bool {
	c := condition(job, kind)
	return c != nil && c.Status == metav1.ConditionTrue
}

// started reports whether the replica's pod runs or has finished.
func started(r *replicas.Replica) bool { return r.Phase == replicas.Running || r.Phase.Finished() }

// notTerminating reports whether the replica's pod is not terminating.
func notTerminating(r *replicas.Replica) bool { return r.Pod == nil || !replicas.IsTerminating(r.Pod) }
