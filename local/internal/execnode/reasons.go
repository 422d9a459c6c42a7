package execnode

import (
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// startReasons has, by container, why a container could not be started; an entry is removed once it has started.
type startReasons map[string]startReason

type startReason struct{ reason, message string }

// update records the result of a sync of the pod, and reports whether the pod's status must be computed again.
func (s startReasons) update(result kubecontainer.PodSyncResult) (changed bool) {
	for _, step := range result.SyncResults {
		if step.Action != kubecontainer.StartContainer {
			changed = changed || step.Error == nil
			continue
		}
		name := step.Target.(string)
		before, failedBefore := s[name]
		if step.Error == nil {
			delete(s, name)
			changed = true
			continue
		}
		s[name] = startReason{step.Error.Error(), step.Message}
		changed = changed || !failedBefore || before != s[name]
	}
	return changed
}

func (s startReasons) get(container string) (reason, message string, attempted bool) {
	found, attempted := s[container]
	return found.reason, found.message, attempted
}
