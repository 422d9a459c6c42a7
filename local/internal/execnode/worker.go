package execnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/events"

	"github.com/musterhq/muster/local/internal/execnode/podstatus"
	"github.com/musterhq/muster/local/internal/execnode/podvolume"
	"github.com/musterhq/muster/local/internal/execnode/process"
)

const (
	// volumeRefresh is how often a running pod's volumes are brought up to date with ConfigMaps, Secrets and tokens.
	// Nothing is read from the API server for it unless a token is about to expire.
	volumeRefresh = time.Minute
	// retry is after a failure that may pass, such as a ConfigMap that does not exist yet.
	firstRetry   = 500 * time.Millisecond
	longestRetry = 15 * time.Second
)

// worker leads one pod through its life on the node. All of its work is done on one goroutine; others only tell it
// what has changed.
type worker struct {
	node  *Node
	uid   types.UID
	waked chan struct{} // holds at most one

	mu      sync.Mutex
	pod     *corev1.Pod // as the API server has it
	gone    bool        // from the API server
	stopped bool        // nothing of it runs or will
	volumes map[string]podvolume.Volume

	// From here on it is the goroutine's own.
	failure    *podstatus.Failure // ends the pod
	reported   bool               // the last status was
	deleting   bool               // when it was reported, the pod was to be deleted
	registered bool               // its ConfigMaps and Secrets are watched
	fresh      time.Time          // when its volumes were last made
	retries    int
	reasons    startReasons
	told       string // the last warning, said once
	clashes    portClashes
}

func newWorker(n *Node, pod *corev1.Pod) *worker {
	return &worker{node: n, uid: pod.UID, pod: pod, waked: make(chan struct{}, 1), reasons: startReasons{}, clashes: portClashes{}}
}

func (w *worker) wake() {
	select {
	case w.waked <- struct{}{}:
	default: // it will look anyway
	}
}

func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	w.pod = pod
	w.mu.Unlock()
	w.wake()
}

func (w *worker) remove() {
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	w.wake()
}

func (w *worker) current() (pod *corev1.Pod, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod, w.gone
}

func (w *worker) isStopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

func (w *worker) setStopped() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
}

func (w *worker) isLeaving() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone || w.pod.DeletionTimestamp != nil
}

func (w *worker) madeVolumes() map[string]podvolume.Volume {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.volumes
}

// run works until the pod is forgotten or the context ends.
func (w *worker) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.waked:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return
		}
		next, done := w.step(ctx)
		if done {
			return
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// step looks at the pod, decides and acts. It gives the time to look again, zero for when something happens.
func (w *worker) step(ctx context.Context) (next time.Time, done bool) {
	pod, gone := w.current()
	logger := podLogger(ctx, pod)
	ctx = klog.NewContext(ctx, logger)
	k := w.node.kubelet
	adapted := adapt(pod, w.node.isolation.Mounts)
	state, err := w.look(ctx, pod)
	if err != nil {
		logger.Error(err, "Cannot read the state of the pod's containers")
		return time.Now().Add(firstRetry), false
	}
	status := w.statusFrom(ctx, pod, state, false)
	refusal := refuseIfNeeded(pod, w.node.isolation.Mounts)
	decision := decide(view{
		pod: pod, gone: gone, phase: status.Phase, alive: isAlive(state),
		finished: w.reported && w.deleting == (pod.DeletionTimestamp != nil),
		refusal:  refusal,
		deadline: deadlineOf(pod, status), now: time.Now(),
	})
	if decision.pastDeadline {
		w.failure = &podstatus.Failure{Reason: "DeadlineExceeded", Message: "Pod was active on the node longer than the specified deadline"}
	}
	if !decision.refused {
		refusal = nil
	} else {
		w.warn(pod, refusal.Reason, refusal.Message)
	}
	logger.V(4).Info("Worker decided", "action", decision.action)
	switch decision.action {
	case toRun:
		k.status.SetPodStatus(logger, pod, status)
		return earliest(w.runContainers(ctx, adapted, state), decision.wake), false
	case toRefuse:
		refusal.apply(&status)
		k.status.SetPodStatus(logger, pod, status)
	case toKill:
		if !gone {
			k.status.SetPodStatus(logger, pod, w.statusFrom(ctx, pod, state, false))
		}
		if err := w.kill(ctx, adapted, state, decision.grace); err != nil {
			logger.Error(err, "Cannot stop the pod's containers")
			return time.Now().Add(firstRetry), false
		}
		return time.Now(), false
	case toFinish:
		w.finish(ctx, pod, state, refusal)
	case toForget:
		w.forget(ctx, pod)
		return time.Time{}, true
	case toRest:
	}
	return time.Time{}, false
}

// look gives what the container runtime has of the pod.
func (w *worker) look(ctx context.Context, pod *corev1.Pod) (*kubecontainer.PodStatus, error) {
	runtime := w.node.kubelet.runtime
	found, err := runtime.GetPod(ctx, pod.UID)
	if errors.Is(err, kubecontainer.ErrPodNotFound) {
		found, err = &kubecontainer.Pod{ID: pod.UID, Name: pod.Name, Namespace: pod.Namespace}, nil
	}
	if err != nil {
		return nil, err
	}
	return runtime.GetPodStatus(ctx, found)
}

// isAlive says that something of the pod has to be stopped before it can be reported as ended.
func isAlive(state *kubecontainer.PodStatus) bool {
	running := kubecontainer.ConvertPodStatusToRunningPod(process.Name, state)
	if len(running.Containers) > 0 {
		return true
	}
	for _, sandbox := range running.Sandboxes {
		if sandbox.State == kubecontainer.ContainerStateRunning {
			return true
		}
	}
	return false
}

// statusFrom gives the status that follows from what is seen.
func (w *worker) statusFrom(ctx context.Context, pod *corev1.Pod, state *kubecontainer.PodStatus, over bool) corev1.PodStatus {
	k := w.node.kubelet
	previous, known := k.status.GetPodStatus(pod.UID)
	if !known {
		previous = pod.Status
	}
	if pod.Spec.HostNetwork && len(state.SandboxStatuses) > 0 {
		state.IPs = []string{w.node.hostAddress.String()}
	}
	return podstatus.Generate(podstatus.Seen{
		Pod: pod, Previous: previous, Runtime: state, Over: over, Failure: w.failure, Waiting: w.reasons.get,
		Probed: func(status *corev1.PodStatus) { k.prober.UpdatePodStatus(ctx, pod, status) },
		HostIP: w.node.hostAddress.String(),
	})
}

// runContainers lets the runtime manager do what is due, and gives the time when more will be.
func (w *worker) runContainers(ctx context.Context, pod *corev1.Pod, state *kubecontainer.PodStatus) time.Time {
	k := w.node.kubelet
	w.clashes.tell(w, pod, state)
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
	result := k.runtime.SyncPod(context.WithoutCancel(ctx), pod, state, nil, k.backOff, restartsAll(pod))
	w.reasons.update(result)
	if err := k.collectGarbage(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove old containers")
	}
	if len(result.SyncResults) > 0 {
		w.wake() // what was done, or why it was not, is in the status only next time
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

// failed says once why a pod cannot start yet, and gives the time of the next attempt.
func (w *worker) failed(pod *corev1.Pod, reason string, err error) time.Time {
	w.warn(pod, reason, err.Error())
	return w.retryTime()
}

// warn makes an event, unless the last one said the same.
func (w *worker) warn(pod *corev1.Pod, reason, message string) {
	if w.told != reason+message {
		w.node.kubelet.recorder.Event(pod, corev1.EventTypeWarning, reason, message)
		w.told = reason + message
	}
}

func (w *worker) retryTime() time.Time {
	delay := min(firstRetry<<min(w.retries, 10), longestRetry)
	w.retries++
	return time.Now().Add(delay)
}

// kill stops all that runs of a pod. A grace period that becomes shorter meanwhile counts at once.
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
			go k.runtime.KillPod(ctx, pod, running, grace) // the first returns as soon as this has its way
		}
	}
}

// graceNow gives the pod's grace period if it has become shorter.
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

// finish reports the last status of a pod, after which the status manager deletes it if it is to be deleted. A refusal
// is why the pod fails without having run.
func (w *worker) finish(ctx context.Context, pod *corev1.Pod, state *kubecontainer.PodStatus, refusal *refusal) {
	k := w.node.kubelet
	logger := klog.FromContext(ctx)
	if !w.reported {
		if refusal != nil {
			w.failure = &refusal.Failure
		}
		w.clashes.tell(w, pod, state)
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
	w.reported, w.deleting = true, pod.DeletionTimestamp != nil
}

// release gives up what only running containers need.
func (w *worker) release(pod *corev1.Pod) {
	k := w.node.kubelet
	if w.registered {
		k.configMaps.UnregisterPod(pod)
		k.secrets.UnregisterPod(pod)
		w.registered = false
	}
	k.tokens.DeleteServiceAccountToken(pod.UID)
	k.volumes.Remove(pod.UID) // what is left goes when the node starts or stops
}

// forget removes all traces of a pod. Its logs go with its containers.
func (w *worker) forget(ctx context.Context, pod *corev1.Pod) {
	k := w.node.kubelet
	logger := klog.FromContext(ctx)
	w.setStopped()
	k.prober.RemovePod(pod)
	w.release(pod)
	w.node.pods.forget(w.uid)
	k.status.RemoveOrphanedStatuses(logger, w.node.pods.known())
	if err := k.collectGarbage(ctx); err != nil {
		logger.Error(err, "Cannot remove the pod's containers")
	}
	if err := os.RemoveAll(w.node.podDir(w.uid)); err != nil {
		logger.Error(err, "Cannot remove the pod's directory")
	}
	k.backOff.GC()
}

// restartsAll says that the containers of the pod are to start over together.
func restartsAll(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.AllContainersRestarting {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// earliest gives the earlier of two times, of which zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
