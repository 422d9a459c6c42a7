// Package podenv works out the environment variables of a container as the kubelet does, with the kubelet's own
// packages for field paths, expansion, resources and services. The kubelet's function that puts them together is a
// method of the kubelet itself and cannot be called; [Build] follows it step by step.
//
// It may be used by package execnode alone. It reads what it is given and must never talk to an API server.
package podenv
