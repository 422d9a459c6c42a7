// Package podenv computes the environment variables of a container as the kubelet does, with the kubelet's own packages
// for field paths, expansion, resources and services. The kubelet's function that combines them is a method of the
// kubelet and cannot be called; [Build] follows it step by step.
//
// Only package execnode uses it. It never talks to an API server.
package podenv
