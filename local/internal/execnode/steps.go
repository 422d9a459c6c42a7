package execnode

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/events"
	"k8s.io/kubernetes/pkg/securitycontext"

	"github.com/musterhq/muster/local/internal/execnode/podvolume"
	"github.com/musterhq/muster/local/internal/execnode/process"
)

// runContainers lets the runtime manager do what is due, and returns when it must be called again.
func (w *worker) runContainers(ctx context.Context, pod *corev1.Pod, state *kubecontainer.PodStatus,
	status corev1.PodStatus) time.Time {
	k := w.node.kubelet
	w.clashes.report(w, pod, state)
	if len(state.ContainerStatuses) == 0 {
		w.reportIgnored(pod)
	}
	if !w.registered {
		k.configMaps.RegisterPod(pod)
		k.secrets.RegisterPod(pod)
		w.registered = true
	}
	volumes, err := k.volumes.SetUp(ctx, pod)
	if err != nil {
		return w.failed(pod, events.FailedMountVolume, fmt.Errorf("cannot make the volumes of the pod: %w", err))
	}
	w.mu.Lock()
	w.volumes = volumes
	w.mu.Unlock()
	k.prober.AddPod(ctx, pod)
	result := k.runtime.SyncPod(context.WithoutCancel(ctx), pod, state, nil, k.backOff, restartsAll(status))
	if w.reasons.update(result) {
		w.wake() // the result gets into the status only at the next step
	}
	if err := k.removeOldRuns(ctx, state); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove old containers")
	}
	err = result.Error()
	until, backOff := kubecontainer.MinBackoffExpiration(err)
	switch {
	case err == nil:
		w.retries = 0
		if podvolume.Changing(pod) {
			return time.Now().Add(volumeRefresh)
		}
		return time.Time{}
	case backOff:
		return until
	default:
		return w.retryTime()
	}
}

// failed reports, once for each reason, why a pod cannot start yet, and returns the time of the next attempt.
func (w *worker) failed(pod *corev1.Pod, reason string, err error) time.Time {
	w.warn(pod, reason, err.Error())
	return w.retryTime()
}

// warn records an event, unless the last one was equal.
func (w *worker) warn(pod *corev1.Pod, reason, message string) {
	if w.lastWarning != reason+message {
		w.node.kubelet.recorder.Event(pod, corev1.EventTypeWarning, reason, message)
		w.lastWarning = reason + message
	}
}

func (w *worker) retryTime() time.Time {
	delay := min(firstRetry<<min(w.retries, 10), longestRetry)
	w.retries++
	return time.Now().Add(delay)
}

// kill stops all containers of a pod. If the grace period is shortened meanwhile, that takes effect at once.
func (w *worker) kill(ctx context.Context, pod *corev1.Pod, state *kubecontainer.PodStatus, grace *int64) error {
	k := w.node.kubelet
	k.prober.StopLivenessAndStartup(pod)
	running := kubecontainer.ConvertPodStatusToRunningPod(process.Name, state)
	killed := make(chan error, 1)
	go func() { killed <- k.runtime.KillPod(ctx, pod, running, grace) }()
	for {
		select {
		case err := <-killed:
			return err
		case <-ctx.Done():
			return nil // the node stops, and with it all containers
		case <-w.waked:
		}
		if shorter := w.graceNow(pod, grace); shorter != nil {
			grace = shorter
			go k.runtime.KillPod(ctx, pod, running, grace) // the first call returns once this one has killed the containers
		}
	}
}

// graceNow returns the pod's grace period if it has become shorter.
func (w *worker) graceNow(pod *corev1.Pod, before *int64) *int64 {
	latest, gone := w.current()
	now := latest.DeletionGracePeriodSeconds
	if gone {
		now = new(int64)
	}
	if before == nil {
		before = pod.Spec.TerminationGracePeriodSeconds
	}
	if now == nil || before == nil || *now >= *before {
		return nil
	}
	return now
}

// finish reports the last status of a pod, after which the status manager deletes a pod with a deletion timestamp.
// refusal is why the pod fails without having run, nil if it did run.
func (w *worker) finish(ctx context.Context, pod *corev1.Pod, state *kubecontainer.PodStatus, refusal *refusal) {
	k := w.node.kubelet
	logger := klog.FromContext(ctx)
	if !w.lastReported {
		if refusal != nil {
			w.failure = &refusal.Failure
		}
		w.clashes.report(w, pod, state)
		w.setStopped()
		status := w.statusFrom(ctx, pod, state, true)
		if refusal != nil {
			refusal.apply(&status)
		}
		k.prober.RemovePod(pod)
		k.status.SetPodStatus(logger, pod, status)
		w.release(pod)
	}
	k.status.TerminatePod(logger, pod)
	w.lastReported, w.deleting = true, pod.DeletionTimestamp != nil
}

// release releases what only running containers need.
func (w *worker) release(pod *corev1.Pod) {
	k := w.node.kubelet
	w.unregister(pod)
	k.tokens.DeleteServiceAccountToken(pod.UID)
	k.volumes.Remove(pod.UID) // the rest is removed when the node starts or stops
}

// unregister stops watching the pod's ConfigMaps and Secrets.
func (w *worker) unregister(pod *corev1.Pod) {
	if w.registered {
		w.node.kubelet.configMaps.UnregisterPod(pod)
		w.node.kubelet.secrets.UnregisterPod(pod)
		w.registered = false
	}
}

// forget removes all traces of a pod.
func (w *worker) forget(ctx context.Context, pod *corev1.Pod, state *kubecontainer.PodStatus) {
	k := w.node.kubelet
	logger := klog.FromContext(ctx)
	w.setStopped()
	k.prober.RemovePod(pod)
	w.release(pod)
	w.node.pods.forget(w.uid)
	k.status.RemoveOrphanedStatuses(logger, w.node.pods.known())
	if err := k.removePod(ctx, pod, state); err != nil {
		logger.Error(err, "Cannot remove the pod's containers")
	}
	if err := os.RemoveAll(w.node.podDir(w.uid)); err != nil {
		logger.Error(err, "Cannot remove the pod's directory")
	}
	k.backOff.GC()
}

// restartsAll reports whether the containers of the pod must be restarted together.
func restartsAll(status corev1.PodStatus) bool {
	for _, condition := range status.Conditions {
		if condition.Type == corev1.AllContainersRestarting {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// reasonUserIgnored: a container asks for another user than the one that runs the node, which requires root.
const reasonUserIgnored = "RunAsUserIgnored"

// reportIgnored records events for the features that a pod asks for and runs without.
func (w *worker) reportIgnored(pod *corev1.Pod) {
	own := int64(os.Geteuid())
	if own == 0 && !w.node.isolation.UserNamespace {
		return
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if user, ok := securitycontext.DetermineEffectiveRunAsUser(pod, &list[i]); ok && *user != own {
				w.warn(pod, reasonUserIgnored, fmt.Sprintf(
					"container %q asks to run as user %d but runs as user %d, the user of this node: only root may change users",
					list[i].Name, *user, own))
				return
			}
		}
	}
}
