// Package podstatus computes the status of a pod from its containers, as the kubelet does: container states, phase and
// conditions. All its functions are pure. The kubelet's own functions for it are methods of the kubelet and cannot be
// called; these follow them (kubernetes/pkg/kubelet/kubelet_pods.go, Copyright The Kubernetes Authors, Apache License
// 2.0) without resizing and image volumes, which this node does not have. The conditions are the kubelet's own.
//
// Only package execnode uses it. It knows nothing of processes, clocks or clients.
package podstatus
