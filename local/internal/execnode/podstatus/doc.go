// Package podstatus works out the status of a pod from what its containers do, as the kubelet does: container states,
// phase and conditions. Everything here is a pure function of what was seen. The kubelet's own functions for it are
// methods of the kubelet and cannot be called; these follow them (kubernetes/pkg/kubelet/kubelet_pods.go, Copyright
// The Kubernetes Authors, Apache License 2.0) without resizing and image volumes, which this node does not have. The
// conditions are the kubelet's own.
//
// It may be used by package execnode alone, and must never know processes, clocks or clients.
package podstatus
