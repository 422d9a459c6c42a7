package simnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubeletstatus "k8s.io/kubernetes/pkg/kubelet/status"
	"k8s.io/utils/ptr"
)

// place is what a decision needs to know about the pod's machine.
type place struct {
	// hostIP is the address of the machine, empty if its Node has none.
	hostIP string
	// podIP is the address that the pod gets if it has none yet.
	podIP string
	// stepped is when this process last moved the pod on, zero if it never did. The API keeps whole seconds only;
	// with this, a run of 300ms takes 300ms.
	stepped time.Time
}

// decision is what to do about a pod now, and when to decide again.
type decision struct {
	action action
	// status is what to write, if action is writeStatus.
	status *corev1.PodStatus
	// stepped is place.stepped of the next decision, once status is written.
	stepped time.Time
	// due is when the pod changes by itself. Zero: only when it or its node changes.
	due time.Time
}

type action int

const (
	nothing action = iota
	writeStatus
	// remove asks to delete the object of a terminated pod, the last step of a kubelet's graceful deletion.
	remove
)

// decide returns what the kubelet of a pod's machine would do at now. It is a pure function, and idempotent: once its
// result is written, there is nothing to do until due.
func decide(pod *corev1.Pod, at place, now time.Time) decision {
	if ended(pod) {
		if pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) > 0 {
			return decision{action: remove}
		}
		return decision{} // the grace period is over: finalizers hold it
	}

	k := kubelet{pod: pod, at: at, now: now, status: pod.Status.DeepCopy()}
	due := k.run()
	k.describe()

	d := decision{due: due, stepped: k.at.stepped}
	if !apiequality.Semantic.DeepEqual(&pod.Status, k.status) {
		d.action, d.status = writeStatus, k.status
	}
	return d
}

// ended reports whether the pod has a phase that no pod leaves.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// kubelet is the state of one decision: the status being computed.
type kubelet struct {
	pod    *corev1.Pod
	at     place
	now    time.Time
	status *corev1.PodStatus
}

// run moves the pod on to where it should be now, and returns the time of its next move.
func (k *kubelet) run() (due time.Time) {
	if k.pod.DeletionTimestamp != nil {
		k.terminate()
		return time.Time{}
	}
	behavior, err := behaviorOf(k.pod.Annotations)
	if err != nil {
		k.fail(reasonInvalidSimulation, err.Error())
		return time.Time{}
	}
	k.admit()
	deadline := k.deadline()
	if !deadline.IsZero() && !k.now.Before(deadline) {
		k.fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
		return time.Time{}
	}
	k.startInitContainers()
	due = earlier(k.runContainers(behavior), deadline)
	k.status.Phase = k.phase()
	if k.status.Phase != corev1.PodRunning {
		k.stopSidecars()
		return time.Time{}
	}
	return due
}

// admit acknowledges the pod, which then has a start time and addresses.
func (k *kubelet) admit() {
	s := k.status
	if s.StartTime == nil {
		s.StartTime = ptr.To(metav1.NewTime(k.now))
	}
	if s.HostIP == "" && k.at.hostIP != "" {
		s.HostIP = k.at.hostIP
		s.HostIPs = []corev1.HostIP{{IP: k.at.hostIP}}
	}
	podIP := k.at.podIP
	if k.pod.Spec.HostNetwork {
		podIP = k.at.hostIP
	}
	if s.PodIP == "" && podIP != "" {
		s.PodIP = podIP
		s.PodIPs = []corev1.PodIP{{IP: podIP}}
	}
}

// deadline is when the pod's activeDeadlineSeconds are over; zero if it has none.
func (k *kubelet) deadline() time.Time {
	seconds := k.pod.Spec.ActiveDeadlineSeconds
	if seconds == nil {
		return time.Time{}
	}
	return k.exact(*k.status.StartTime).Add(time.Duration(*seconds) * time.Second)
}

// fail terminates the pod early, with a reason in its status.
func (k *kubelet) fail(reason, message string) {
	k.stopContainers()
	k.status.Phase, k.status.Reason, k.status.Message = corev1.PodFailed, reason, message
}

// terminate ends a deleted pod. It has failed, unless only containers that had succeeded were waiting to be restarted.
func (k *kubelet) terminate() {
	k.stopContainers()
	if k.phase() != corev1.PodSucceeded || len(k.status.ContainerStatuses) == 0 {
		k.status.Phase = corev1.PodFailed
	} else {
		k.status.Phase = corev1.PodSucceeded
	}
}

// phase derives the phase from the containers. A Terminated container is final here: runContainers has restarted the
// others.
func (k *kubelet) phase() corev1.PodPhase {
	phase := corev1.PodSucceeded
	for i := range k.status.ContainerStatuses {
		terminated := k.status.ContainerStatuses[i].State.Terminated
		if terminated == nil {
			return corev1.PodRunning
		}
		if terminated.ExitCode != 0 {
			phase = corev1.PodFailed
		}
	}
	return phase
}

// describe sets the conditions that follow from phase and containers, and keeps the conditions of others.
func (k *kubelet) describe() {
	pod, old, s := k.pod, &k.pod.Status, k.status
	s.ObservedGeneration = pod.Generation
	all := append(append([]corev1.ContainerStatus{}, s.InitContainerStatuses...), s.ContainerStatuses...)

	// A live machine has a network for its pods; a terminated pod has none.
	sandbox := corev1.ConditionTrue
	if ended(&corev1.Pod{Status: *s}) {
		sandbox = corev1.ConditionFalse
	}
	k.set(corev1.PodCondition{
		Type: corev1.PodReadyToStartContainers, Status: sandbox,
		ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(old, pod.Generation,
			corev1.PodReadyToStartContainers),
	})
	k.set(kubeletstatus.GeneratePodInitializedCondition(pod, old, all, s.Phase))
	k.set(kubeletstatus.GeneratePodReadyCondition(pod, old, s.Conditions, all, s.Phase))
	k.set(kubeletstatus.GenerateContainersReadyCondition(pod, old, all, s.Phase))
	k.set(corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(old, pod.Generation, corev1.PodScheduled),
	})
}

// set replaces the condition of this type, and keeps the transition time if the status is the same.
func (k *kubelet) set(condition corev1.PodCondition) {
	conditions := k.status.Conditions
	for i := range conditions {
		if conditions[i].Type != condition.Type {
			continue
		}
		condition.LastProbeTime = conditions[i].LastProbeTime
		condition.LastTransitionTime = conditions[i].LastTransitionTime
		if conditions[i].Status != condition.Status {
			condition.LastTransitionTime = metav1.NewTime(k.now)
		}
		conditions[i] = condition
		return
	}
	condition.LastTransitionTime = metav1.NewTime(k.now)
	k.status.Conditions = append(conditions, condition)
}

// exact returns the instant behind a time that the API has cut to whole seconds, as far as this process remembers it.
func (k *kubelet) exact(recorded metav1.Time) time.Time {
	if k.at.stepped.Truncate(time.Second).Equal(recorded.Truncate(time.Second)) {
		return k.at.stepped
	}
	return recorded.Time
}

// earlier returns the earlier of two times; zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
