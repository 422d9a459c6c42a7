package genericjob

import (
	"slices"

	"k8s.io/utils/ptr"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
)

// equalStatus reports whether two statuses are equal. It runs in each reconcile over thousands of
// replicas, for which reflection is too slow.
func equalStatus(a, b *tensorstack.GenericJobStatus) bool {
	return a.Phase == b.Phase && ptr.Equal(a.Aggregate, b.Aggregate) && ptr.Equal(a.Ready, b.Ready) &&
		slices.EqualFunc(a.Conditions, b.Conditions, equalCondition) && slices.EqualFunc(a.Tasks, b.Tasks, equalTask)
}

func equalCondition(a, b tensorstack.JobCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

func equalTask(a, b tensorstack.Tasks) bool {
	return a.Type == b.Type && a.RestartCount == b.RestartCount && slices.EqualFunc(a.Replicas, b.Replicas, equalReplica)
}

func equalReplica(a, b tensorstack.ReplicaStatus) bool {
	return a.Name == b.Name && a.UID == b.UID && a.Phase == b.Phase && a.RestartCount == b.RestartCount &&
		a.SettledRestarts == b.SettledRestarts &&
		slices.EqualFunc(a.Containers, b.Containers, func(a, b tensorstack.ContainerStatus) bool {
			return a.Name == b.Name && a.State == b.State && ptr.Equal(a.ExitCode, b.ExitCode)
		})
}
