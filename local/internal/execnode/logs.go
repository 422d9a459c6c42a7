package execnode

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/flushwriter"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core/v1/validation"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/local/internal/execnode/process"
)

// logs writes the log of a container, as it is or as it grows.
func (s *server) logs(w http.ResponseWriter, r *http.Request) {
	pod := s.pod(w, r)
	if pod == nil {
		return
	}
	options := &corev1.PodLogOptions{}
	if err := legacyscheme.ParameterCodec.DecodeParameters(r.URL.Query(), corev1.SchemeGroupVersion, options); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	options.TypeMeta = metav1.TypeMeta{}
	if options.Stream == nil {
		options.Stream = ptr.To(corev1.LogStreamAll)
	}
	if problems := validation.ValidatePodLogOptions(options); len(problems) > 0 {
		http.Error(w, problems.ToAggregate().Error(), http.StatusUnprocessableEntity)
		return
	}
	status, ok := s.node.kubelet.status.GetPodStatus(pod.UID)
	if !ok {
		status = pod.Status
	}
	name := r.PathValue("container")
	id, err := runWithLog(status, pod.Name, name, options.Previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	all := flushwriter.Wrap(w)
	var out, errs io.Writer = all, all
	switch *options.Stream {
	case corev1.LogStreamStdout:
		errs = nil
	case corev1.LogStreamStderr:
		out = nil
	}
	all.Write(nil) // send the headers even if the log is still empty
	if err := s.node.kubelet.runtime.GetContainerLogs(r.Context(), pod, id, options, out, errs); err != nil &&
		r.Context().Err() == nil {
		fmt.Fprintf(w, "reading the log of container %s: %v\n", name, err)
	}
}

// runWithLog returns the run of a container whose log is requested.
func runWithLog(status corev1.PodStatus, pod, container string, previous bool) (kubecontainer.ContainerID, error) {
	found, ok := findContainer(status, container)
	if !ok {
		return kubecontainer.ContainerID{}, fmt.Errorf("container %q in pod %q is not available", container, pod)
	}
	last := found.LastTerminationState.Terminated
	hasLast := last != nil && last.ContainerID != ""
	var id string
	switch {
	case previous && !hasLast:
		return kubecontainer.ContainerID{}, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod)
	case previous:
		id = last.ContainerID
	case found.State.Running != nil:
		id = found.ContainerID
	case found.State.Terminated != nil && found.State.Terminated.ContainerID != "":
		id = found.State.Terminated.ContainerID
	case hasLast:
		id = last.ContainerID
	case found.State.Waiting != nil:
		return kubecontainer.ContainerID{}, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod,
			strings.TrimSuffix(found.State.Waiting.Reason+": "+found.State.Waiting.Message, ": "))
	default:
		return kubecontainer.ContainerID{}, fmt.Errorf("container %q in pod %q has no log", container, pod)
	}
	return kubecontainer.ContainerID{Type: process.Name, ID: idOf(id)}, nil
}

func findContainer(status corev1.PodStatus, name string) (corev1.ContainerStatus, bool) {
	all := slices.Concat(status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses)
	i := slices.IndexFunc(all, func(container corev1.ContainerStatus) bool { return container.Name == name })
	if i < 0 {
		return corev1.ContainerStatus{}, false
	}
	return all[i], true
}

// idOf returns the ID in <runtime>://<ID>.
func idOf(containerID string) string {
	_, id, _ := strings.Cut(containerID, "://")
	return id
}
