package process

import (
	"context"
	"errors"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// errNotNeeded is returned by the methods that the kubelet's runtime manager does not call on the node's paths: the
// node itself serves streams, and nothing measures containers.
var errNotNeeded = errors.New("the local node's container runtime does not do this")

// notNeeded implements the rest of the RuntimeService.
type notNeeded struct{}

func (notNeeded) Exec(context.Context, *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return nil, errNotNeeded
}
func (notNeeded) Attach(context.Context, *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return nil, errNotNeeded
}
func (notNeeded) PortForward(context.Context, *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return nil, errNotNeeded
}
func (notNeeded) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) error {
	return errNotNeeded
}
func (notNeeded) CheckpointPod(context.Context, *runtimeapi.CheckpointPodRequest) error {
	return errNotNeeded
}
func (notNeeded) RestorePod(context.Context, *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return nil, errNotNeeded
}
func (notNeeded) GetContainerEvents(context.Context, chan *runtimeapi.ContainerEventResponse,
	func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return errNotNeeded
}
func (notNeeded) UpdatePodSandboxResources(context.Context,
	*runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return nil, errNotNeeded
}
func (notNeeded) ContainerStats(context.Context, string) (*runtimeapi.ContainerStats, error) {
	return nil, errNotNeeded
}
func (notNeeded) ListContainerStats(context.Context,
	*runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return nil, errNotNeeded
}
func (notNeeded) PodSandboxStats(context.Context, string) (*runtimeapi.PodSandboxStats, error) {
	return nil, errNotNeeded
}
func (notNeeded) ListPodSandboxStats(context.Context,
	*runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return nil, errNotNeeded
}
func (notNeeded) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, errNotNeeded
}
func (notNeeded) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, errNotNeeded
}
func (notNeeded) UpdateRuntimeConfig(context.Context, *runtimeapi.RuntimeConfig) error {
	return errNotNeeded
}
func (notNeeded) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{}, nil
}
