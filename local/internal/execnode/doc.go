// Package execnode is a node for development: it registers a Node with this machine's CPU and memory, and runs the
// containers of the pods bound to it as processes of this machine. There are no images and there is no isolation;
// docs/start/local-nodes.md lists the other differences from a kubelet.
//
// It is composed of the kubelet's own packages: the runtime manager decides which containers start, restart, wait and
// stop; the prober probes; the status manager writes status, only when it has changed. The rest is implemented here: a
// container runtime of processes (package process, with shim), networks (podnet, clusterdns), volumes (podvolume),
// environments (podenv), the status that follows from containers (podstatus), and in this package the node, a worker
// for each pod, and the server for kubectl logs and kubectl exec.
//
// Only package lifecycle of this module starts and stops nodes. A node must not read or write another node's pods, and
// writes nothing in steady state.
package execnode
