// Package process is a container runtime whose containers are processes of this machine. It implements the container
// runtime interface of Kubernetes (k8s.io/cri-api) in memory, so that the kubelet's own runtime manager can drive it:
// sandboxes are network namespaces where the machine allows them, containers are commands under a first process each
// (package shim), images are never pulled.
//
// It may be used by package execnode alone. It knows sandboxes, containers and mounts, and must never know pods beyond
// the labels and names that its callers give it, nor talk to an API server.
package process
