package process

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/musterhq/muster/local/internal/execnode/shim"
)

// container is one run of a container of a pod.
type container struct {
	runtime *Runtime
	id      string
	sandbox string                      // ID
	config  *runtimeapi.ContainerConfig // nil if it is of an earlier run of the node
	status  *runtimeapi.ContainerStatus // guarded by Runtime.mu

	// From here on it is set when the container starts, before its state says that it runs.
	first   *first
	command shim.Start
	log     *logFile

	ended chan struct{} // closed when the status has its end
}

// running must be called with Runtime.mu held.
func (c *container) running() bool {
	return c.status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING
}

// CreateContainer implements RuntimeService. It only records the configuration.
func (r *Runtime) CreateContainer(_ context.Context, sandboxID string, config *runtimeapi.ContainerConfig,
	pod *runtimeapi.PodSandboxConfig) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.sandbox(sandboxID); err != nil {
		return "", err
	}
	c := &container{runtime: r, id: newID(), sandbox: sandboxID, config: config, ended: make(chan struct{})}
	c.status = &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: config.GetMetadata(), State: runtimeapi.ContainerState_CONTAINER_CREATED,
		CreatedAt: time.Now().UnixNano(), Image: &runtimeapi.ImageSpec{Image: config.GetImage().GetUserSpecifiedImage()},
		Labels: config.GetLabels(), Annotations: config.GetAnnotations(), Mounts: config.GetMounts(),
		LogPath: filepath.Join(pod.GetLogDirectory(), config.GetLogPath()), StopSignal: config.GetStopSignal(),
	}
	r.containers[c.id] = c
	return c.id, r.saveRecord(c)
}

// RemoveContainer implements RuntimeService.
func (r *Runtime) RemoveContainer(_ context.Context, id string) error {
	r.mu.Lock()
	c, ok := r.containers[id]
	running := ok && c.running()
	r.mu.Unlock()
	if !ok {
		return nil
	}
	if running {
		c.kill()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.containers, id)
	return r.removeRecord(id)
}

// ListContainers implements RuntimeService.
func (r *Runtime) ListContainers(_ context.Context,
	filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*runtimeapi.Container
	for _, c := range r.containers {
		if filter.GetId() != "" && filter.GetId() != c.id ||
			filter.GetPodSandboxId() != "" && filter.GetPodSandboxId() != c.sandbox ||
			filter.GetState() != nil && filter.GetState().GetState() != c.status.GetState() ||
			!hasLabels(c.status.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		list = append(list, &runtimeapi.Container{
			Id: c.id, PodSandboxId: c.sandbox, Metadata: c.status.GetMetadata(), Image: c.status.GetImage(),
			ImageRef: c.status.GetImageRef(), State: c.status.GetState(), CreatedAt: c.status.GetCreatedAt(),
			Labels: c.status.GetLabels(), Annotations: c.status.GetAnnotations(),
		})
	}
	return list, nil
}

// ContainerStatus implements RuntimeService.
func (r *Runtime) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatusResponse{Status: proto.Clone(c.status).(*runtimeapi.ContainerStatus)}, nil
}

// UpdateContainerResources implements RuntimeService. There is nothing to update: a process may use all there is.
func (r *Runtime) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return nil
}

// ReopenContainerLog implements RuntimeService.
func (r *Runtime) ReopenContainerLog(_ context.Context, id string) error {
	c, err := r.findRunning(id)
	if err != nil {
		return err
	}
	return c.log.reopen()
}

// find returns the container, and whether it runs.
func (r *Runtime) find(id string) (c *container, running bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err = r.container(id)
	return c, err == nil && c.running(), err
}

// findRunning returns the container, and an error if it does not run.
func (r *Runtime) findRunning(id string) (*container, error) {
	c, running, err := r.find(id)
	if err == nil && !running {
		err = fmt.Errorf("container %s does not run", id)
	}
	return c, err
}
