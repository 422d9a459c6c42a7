package execnode

import (
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// startReasons remember why containers of a pod could not be started, until they are.
type startReasons map[string]startReason

type startReason struct{ reason, message string }

// update takes over what a sync of the pod did, and says whether the pod's status has to be looked at again for it.
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

func (s startReasons) get(container string) (reason, message string, tried bool) {
	found, tried := s[container]
	return found.reason, found.message, tried
}
