package execnode

import (
	"errors"
	"testing"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func TestTheSameFailureAgainChangesNothing(t *testing.T) {
	tried := func(err error, message string) kubecontainer.PodSyncResult {
		step := kubecontainer.NewSyncResult(kubecontainer.StartContainer, "main")
		if err != nil {
			step.Fail(err, message)
		}
		return kubecontainer.PodSyncResult{SyncResults: []*kubecontainer.SyncResult{step}}
	}
	crash := errors.New("CrashLoopBackOff")
	reasons := startReasons{}
	for i, step := range []struct {
		result  kubecontainer.PodSyncResult
		changed bool
		reason  string
	}{
		{kubecontainer.PodSyncResult{}, false, ""},
		{tried(crash, "back-off 10s"), true, "CrashLoopBackOff"},
		{tried(crash, "back-off 10s"), false, "CrashLoopBackOff"},
		{tried(crash, "back-off 20s"), true, "CrashLoopBackOff"},
		{tried(nil, ""), true, ""},
	} {
		changed := reasons.update(step.result)
		reason, _, failed := reasons.get("main")
		if changed != step.changed || reason != step.reason || failed != (step.reason != "") {
			t.Errorf("after step %d: changed = %v, reason = %q", i, changed, reason)
		}
	}
}
