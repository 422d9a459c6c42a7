package execnode

import (
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// startReasons remember why containers of a pod could not be started, until they are.
type startReasons map[string]startReason

type startReason struct{ reason, message string }

// update takes over what a sync of the pod did.
func (s startReasons) update(result kubecontainer.PodSyncResult) {
	for _, step := range result.SyncResults {
		if step.Action != kubecontainer.StartContainer {
			continue
		}
		name := step.Target.(string)
		if step.Error == nil {
			delete(s, name)
		} else {
			s[name] = startReason{step.Error.Error(), step.Message}
		}
	}
}

func (s startReasons) get(container string) (reason, message string, tried bool) {
	found, tried := s[container]
	return found.reason, found.message, tried
}
