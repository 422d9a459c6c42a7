package podstatus

import (
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kuberuntime"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

const (
	containerCreating = "ContainerCreating"
	podInitializing   = "PodInitializing"
	// restartingAll is the reason of a container that is removed so that the whole pod starts over.
	restartingAll = "RestartingAllContainers"
	// unknownExitCode is used for a container whose end was not observed.
	unknownExitCode = 137
)

// containers returns the status of each declared container.
func containers(seen Seen, declared []corev1.Container, previous []corev1.ContainerStatus,
	init, restarting bool) []corev1.ContainerStatus {
	c := &conversion{seen: seen, declared: declared, init: init, restarting: restarting,
		previous: byName(previous), result: map[string]*corev1.ContainerStatus{}}
	c.startFromPrevious()
	c.endMissing()
	c.setFromRuntime()
	c.setWaitingReasons()
	if init {
		return kubetypes.SortStatusesOfInitContainers(seen.Pod, c.result)
	}
	list := make([]corev1.ContainerStatus, 0, len(c.result))
	for _, status := range c.result {
		list = append(list, *status)
	}
	sort.Sort(kubetypes.SortedContainerStatuses(list))
	return list
}

func byName(list []corev1.ContainerStatus) map[string]corev1.ContainerStatus {
	named := make(map[string]corev1.ContainerStatus, len(list))
	for _, status := range list {
		named[status.Name] = status
	}
	return named
}

// conversion is the work on one kind of a pod's containers.
type conversion struct {
	seen       Seen
	declared   []corev1.Container
	init       bool
	restarting bool
	previous   map[string]corev1.ContainerStatus
	result     map[string]*corev1.ContainerStatus
}

// waitingReason returns the reason of a container that nothing is known about.
func (c *conversion) waitingReason() string {
	if len(c.seen.Pod.Spec.InitContainers) > 0 {
		return podInitializing
	}
	return containerCreating
}

// startFromPrevious initializes every container as waiting, with its previous state as last state. A terminated
// container stays terminated until the runtime says otherwise.
func (c *conversion) startFromPrevious() {
	for i := range c.declared {
		container := &c.declared[i]
		status := &corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, VolumeMounts: volumeMounts(container),
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: c.waitingReason()}},
		}
		if old, ok := c.previous[container.Name]; ok {
			if old.State.Terminated != nil {
				status = old.DeepCopy()
			} else {
				status.RestartCount, status.LastTerminationState = old.RestartCount, old.LastTerminationState
			}
		}
		c.result[container.Name] = status
	}
}

func volumeMounts(container *corev1.Container) []corev1.VolumeMountStatus {
	var list []corev1.VolumeMountStatus
	for _, mount := range container.VolumeMounts {
		status := corev1.VolumeMountStatus{Name: mount.Name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly}
		if mount.ReadOnly {
			disabled := corev1.RecursiveReadOnlyDisabled
			status.RecursiveReadOnly = &disabled
		}
		list = append(list, status)
	}
	return list
}

// endMissing handles containers that were running before and that the runtime does not know any more: they have
// ended, and must not look as if they had never run.
func (c *conversion) endMissing() {
	for _, container := range c.declared {
		old, known := c.previous[container.Name]
		if !known || c.seen.Runtime.FindContainerStatusByName(container.Name) != nil {
			continue
		}
		status := c.result[container.Name]
		if c.restarting && old.State.Waiting == nil {
			removed := "The container is removed because RestartAllContainers in place"
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: restartingAll, Message: removed}}
			status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: restartingAll, Message: removed,
				ExitCode: unknownExitCode}
			status.RestartCount = old.RestartCount + 1
			continue
		}
		if old.State.Running == nil || status.LastTerminationState.Terminated != nil {
			continue
		}
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			Reason: kubecontainer.ContainerReasonStatusUnknown, ExitCode: unknownExitCode,
			Message: "The container could not be located when the pod was deleted.  The container used to be Running",
		}
		if c.seen.Pod.DeletionTimestamp == nil {
			status.RestartCount++
		}
	}
}

// setFromRuntime sets the state of each container from its latest run in the runtime, and its last state from the one
// before.
func (c *conversion) setFromRuntime() {
	runs := slices.Clone(c.seen.Runtime.ContainerStatuses)
	sort.Sort(sort.Reverse(kubecontainer.SortContainerStatusesByCreationTime(runs)))
	taken := map[string]int{}
	for _, run := range runs {
		if _, ok := c.result[run.Name]; !ok || taken[run.Name] >= 2 {
			continue
		}
		status := c.convert(run)
		if taken[run.Name] == 0 {
			c.result[run.Name] = status
		} else {
			c.result[run.Name].LastTerminationState = status.State
		}
		taken[run.Name]++
	}
}

// convert returns the status of one run of a container.
func (c *conversion) convert(run *kubecontainer.Status) *corev1.ContainerStatus {
	id := run.ID.String()
	old, known := c.previous[run.Name]
	status := &corev1.ContainerStatus{
		Name: run.Name, RestartCount: int32(run.RestartCount), Image: run.Image, ImageID: run.ImageRef, ContainerID: id,
		VolumeMounts: c.result[run.Name].VolumeMounts, StopSignal: run.StopSignal,
	}
	if declared := kubecontainer.GetContainerSpec(c.seen.Pod, run.Name); declared != nil {
		status.Resources, status.AllocatedResources = declared.Resources.DeepCopy(), declared.Resources.Requests
	}
	if known {
		status.RestartCount = max(status.RestartCount, old.RestartCount)
		if old.ContainerID != id && old.State.Terminated != nil {
			status.LastTerminationState.Terminated = old.State.Terminated
		} else {
			status.LastTerminationState.Terminated = old.LastTerminationState.Terminated
		}
	}
	switch run.State {
	case kubecontainer.ContainerStateRunning:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(run.StartedAt)}
		if old.ContainerID == id {
			status.Started = old.Started
		}
		if old.State.Terminated != nil && old.RestartCount >= int32(run.RestartCount) {
			status.RestartCount = old.RestartCount + 1
		}
	case kubecontainer.ContainerStateExited:
		status.State.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: int32(run.ExitCode), Reason: run.Reason, Message: run.Message, ContainerID: id,
			StartedAt: metav1.NewTime(run.StartedAt), FinishedAt: metav1.NewTime(run.FinishedAt),
		}
	default: // created and not started yet
		status.State.Waiting = &corev1.ContainerStateWaiting{}
	}
	return status
}

// setWaitingReasons marks containers that could not be started as waiting, with the reason.
func (c *conversion) setWaitingReasons() {
	for i := range c.declared {
		container := &c.declared[i]
		if c.init && c.initIsDone(container) {
			continue
		}
		if !kubecontainer.ShouldContainerBeRestarted(klog.Background(), container, c.seen.Pod, c.seen.Runtime) {
			continue
		}
		reason, message, attempted := c.seen.Waiting(container.Name)
		if !attempted {
			continue // it is about to start: its previous state says more
		}
		status := c.result[container.Name]
		if status.State.Terminated != nil {
			status.LastTerminationState = status.State
		}
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
}

// initIsDone reports whether an init container has succeeded. One that the runtime has forgotten must have succeeded if
// a container of the pod was created, since that requires it.
func (c *conversion) initIsDone(container *corev1.Container) bool {
	run := c.seen.Runtime.FindContainerStatusByName(container.Name)
	if run != nil {
		return run.State == kubecontainer.ContainerStateExited && run.ExitCode == 0
	}
	status := c.result[container.Name]
	if podutil.IsRestartableInitContainer(container) || status.State.Waiting == nil ||
		!kuberuntime.HasAnyRegularContainerCreated(c.seen.Pod, c.seen.Runtime) {
		return false
	}
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "Completed", Message: "the containers of the pod started after it, so it must have succeeded",
	}}
	return true
}
