package execnode

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"

	"github.com/musterhq/muster/local/internal/execnode/podstatus"
	"github.com/musterhq/muster/local/internal/execnode/podvolume"
)

const (
	// volumeRefresh is the interval at which a running pod's volumes are updated from ConfigMaps, Secrets and tokens.
	// It reads nothing from the API server unless a token is about to expire.
	volumeRefresh = time.Minute
	// firstRetry and longestRetry bound the backoff after a temporary failure, such as a ConfigMap that does not exist
	// yet.
	firstRetry   = 500 * time.Millisecond
	longestRetry = 15 * time.Second
)

// worker handles the lifecycle of one pod on the node. All its work is done on one goroutine; others only signal
// changes to it.
type worker struct {
	node  *Node
	uid   types.UID
	waked chan struct{} // holds at most one

	mu      sync.Mutex
	pod     *corev1.Pod // as the API server has it
	gone    bool        // deleted from the API server
	stopped bool        // no container of the pod runs or will run
	volumes map[string]podvolume.Volume

	// The following fields are used only by that goroutine.
	startTried   bool               // whether a start of the pod was tried
	failure      *podstatus.Failure // ends the pod
	lastReported bool               // whether the last status was reported
	deleting     bool               // when it was reported, the pod was to be deleted
	registered   bool               // its ConfigMaps and Secrets are watched
	retries      int
	reasons      startReasons
	lastWarning  string // reported once
	clashes      portClashes
}

func newWorker(n *Node, pod *corev1.Pod) *worker {
	return &worker{node: n, uid: pod.UID, pod: pod, waked: make(chan struct{}, 1), reasons: startReasons{},
		clashes: portClashes{}}
}

func (w *worker) wake() {
	select {
	case w.waked <- struct{}{}:
	default: // a step is pending already
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

// run runs steps until the pod is forgotten or the context ends.
func (w *worker) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer func() {
		pod, _ := w.current()
		w.unregister(pod)
	}()
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

// observed is what a step has seen of the pod, and acts on.
type observed struct {
	pod    *corev1.Pod              // as the API server has it
	gone   bool                     // deleted from the API server
	state  *kubecontainer.PodStatus // the pod as the container runtime has it
	status corev1.PodStatus         // follows from these
}

// step observes the pod, decides and acts. It returns the time of the next step, zero if only an event triggers it.
func (w *worker) step(ctx context.Context) (next time.Time, done bool) {
	var seen observed
	seen.pod, seen.gone = w.current()
	logger := podLogger(ctx, seen.pod)
	ctx = klog.NewContext(ctx, logger)
	var err error
	if seen.state, err = w.look(ctx, seen.pod); err != nil {
		logger.Error(err, "Cannot read the state of the pod's containers")
		return time.Now().Add(firstRetry), false
	}
	seen.status = w.statusFrom(ctx, seen.pod, seen.state, false)
	refusal := refuseIfNeeded(seen.pod, w.node.isolation.Mounts)
	decision := decide(view{
		pod: seen.pod, gone: seen.gone, phase: seen.status.Phase, alive: isAlive(seen.state),
		finished: w.lastReported && w.deleting == (seen.pod.DeletionTimestamp != nil),
		refusal:  refusal,
		deadline: deadlineOf(seen.pod, w.lastStatus(seen.pod)), now: time.Now(),
	})
	if decision.pastDeadline {
		w.failure = &podstatus.Failure{Reason: "DeadlineExceeded",
			Message: "Pod was active on the node longer than the specified deadline"}
	}
	if !decision.refused {
		refusal = nil
	} else {
		w.warn(seen.pod, refusal.Reason, refusal.Message)
	}
	logger.V(4).Info("Worker decided", "action", decision.action)
	return w.act(ctx, decision, seen, refusal)
}

// act carries out the decision. refusal is why the pod fails or waits because it cannot run here, nil if it does not.
// It returns what step returns.
func (w *worker) act(ctx context.Context, decision decision, seen observed,
	refusal *refusal) (next time.Time, done bool) {
	logger, statuses := klog.FromContext(ctx), w.node.kubelet.status
	adapted := adapt(seen.pod, w.node.isolation.Mounts)
	switch decision.action {
	case toRun:
		if w.startTried {
			statuses.SetPodStatus(logger, seen.pod, seen.status)
		} else {
			w.startTried = true
			w.wake() // soon there is more to report than that it is starting
		}
		return earliest(w.runContainers(ctx, adapted, seen.state, seen.status), decision.wake), false
	case toRefuse:
		refusal.apply(&seen.status)
		statuses.SetPodStatus(logger, seen.pod, seen.status)
	case toKill:
		if !seen.gone && hasRunning(seen.state) { // otherwise it takes no time, and what is reported next says it all
			statuses.SetPodStatus(logger, seen.pod, w.statusFrom(ctx, seen.pod, seen.state, false))
		}
		if err := w.kill(ctx, adapted, seen.state, decision.grace); err != nil {
			logger.Error(err, "Cannot stop the pod's containers")
			return time.Now().Add(firstRetry), false
		}
		return time.Now(), false
	case toFinish:
		w.finish(ctx, seen.pod, seen.state, refusal)
	case toForget:
		w.forget(ctx, seen.pod, seen.state)
		return time.Time{}, true
	case toRest:
	}
	return time.Time{}, false
}

// look returns the state of the pod in the container runtime.
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

// isAlive reports whether something of the pod must be stopped before it can be reported as terminated.
func isAlive(state *kubecontainer.PodStatus) bool {
	return hasRunning(state) ||
		slices.ContainsFunc(state.SandboxStatuses, func(sandbox *runtimeapi.PodSandboxStatus) bool {
			return sandbox.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY
		})
}

// hasRunning reports whether a container of the pod runs.
func hasRunning(state *kubecontainer.PodStatus) bool {
	return slices.ContainsFunc(state.ContainerStatuses, func(run *kubecontainer.Status) bool {
		return run.State == kubecontainer.ContainerStateRunning
	})
}

// lastStatus is the status that was reported last, by this run of the node or an earlier one.
func (w *worker) lastStatus(pod *corev1.Pod) corev1.PodStatus {
	if last, known := w.node.kubelet.status.GetPodStatus(pod.UID); known {
		return last
	}
	return pod.Status
}

// statusFrom returns the status that follows from what is seen.
func (w *worker) statusFrom(ctx context.Context, pod *corev1.Pod, state *kubecontainer.PodStatus,
	over bool) corev1.PodStatus {
	k, previous := w.node.kubelet, w.lastStatus(pod)
	if pod.Spec.HostNetwork && len(state.SandboxStatuses) > 0 {
		state.IPs = []string{w.node.hostAddress.String()}
	}
	return podstatus.Generate(podstatus.Seen{
		Pod: pod, Previous: previous, Runtime: state, Over: over, Failure: w.failure, Waiting: w.reasons.get,
		Probed: func(status *corev1.PodStatus) { k.prober.UpdatePodStatus(ctx, pod, status) },
		HostIP: w.node.hostAddress.String(),
	})
}

// earliest returns the earlier of two times; zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
