// Package process is a container runtime whose containers are processes of this machine. It implements the container
// runtime interface of Kubernetes (k8s.io/cri-api) in memory, so that the kubelet's own runtime manager can drive it:
// sandboxes are network namespaces where the machine allows them, containers are commands under a first process each
// (package shim), images are never pulled.
//
// Only package execnode uses it. It knows sandboxes, containers and mounts, but pods only by the labels and names that
// its callers provide, and it never talks to an API server.
package process
