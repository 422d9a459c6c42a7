package execnode

import (
	"bytes"
	"context"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// reasonPortClash: a container ended because another process of the machine uses its port.
const reasonPortClash = "PortInUse"

// addressInUse matches how programs report that a port is in use: the C library's message, and the name of the error.
var addressInUse = regexp.MustCompile(`(?i)address already in use|EADDRINUSE|port is already (in use|allocated)`)

// clashLogLines is how many of the last lines of a container's log are searched.
const clashLogLines = 50

// portClashes records which ends of containers were examined.
type portClashes map[kubecontainer.ContainerID]bool

// report records an event for each container that failed because its port is in use. This happens only on nodes whose
// pods share the machine's network.
func (p portClashes) report(w *worker, pod *corev1.Pod, state *kubecontainer.PodStatus) {
	if w.node.network != nil && !pod.Spec.HostNetwork {
		return
	}
	for _, container := range state.ContainerStatuses {
		if container.State != kubecontainer.ContainerStateExited || container.ExitCode == 0 || p[container.ID] {
			continue
		}
		p[container.ID] = true
		if line := clashIn(w.node.lastLines(pod, container.ID)); line != "" {
			message := fmt.Sprintf("container %q ended with code %d because a port is taken: %q; pods of this node share the machine's network, so give the pods different ports",
				container.Name, container.ExitCode, line)
			if !pod.Spec.HostNetwork {
				message += ", or start the cluster as root, which gives each pod a network of its own"
			}
			w.node.kubelet.recorder.Event(pod, corev1.EventTypeWarning, reasonPortClash, message)
		}
	}
}

// clashIn returns the line of a log that says that a port is taken, or nothing.
func clashIn(log []byte) string {
	for line := range bytes.Lines(log) {
		if addressInUse.Match(line) {
			return string(bytes.TrimSpace(line))
		}
	}
	return ""
}

// lastLines returns the last lines of a container's log.
func (n *Node) lastLines(pod *corev1.Pod, id kubecontainer.ContainerID) []byte {
	lines := int64(clashLogLines)
	var text bytes.Buffer
	ctx := klog.NewContext(context.Background(), klog.Background())
	if err := n.kubelet.runtime.GetContainerLogs(ctx, pod, id, &corev1.PodLogOptions{TailLines: &lines}, &text,
		&text); err != nil {
		return nil
	}
	return text.Bytes()
}
