// Package execnode is a node for development: it registers a Node with this machine's CPU and memory, and runs the
// containers of the pods that are bound to it as processes of this machine. There are no images and there is no
// isolation; what else differs from a kubelet is in docs/local-nodes.md.
//
// It is put together from the kubelet's own packages. Its runtime manager decides which containers start, restart, wait
// and stop; its prober probes; its status manager writes status, only when it changed. What is here is the rest: a
// container runtime of processes (package process, with shim), networks (podnet, clusterdns), volumes (podvolume),
// environments (podenv), the status that follows from containers (podstatus), and in this package the node, a worker
// for each pod, and the server that kubectl logs and kubectl exec end at.
//
// Package lifecycle of this module starts and stops nodes; nobody else may. A node must never read or write another
// node's pods, and writes nothing in steady state.
package execnode
