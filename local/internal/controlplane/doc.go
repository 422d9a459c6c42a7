// Package controlplane runs a Kubernetes control plane inside this process:
// etcd, kube-apiserver, kube-scheduler and kube-controller-manager, each from
// its own library, configured through its own flags, so that what is known of
// them from real clusters holds here.
//
// They share a process because together they then need half the memory of
// four and start without finding each other over files and ports. The price:
// a process has one feature gate set, one klog and one metrics registry, and
// so can run one control plane in its life.
//
// Called by lifecycle. It must never know of nodes, of Muster's operator, or
// of the terminal.
package controlplane
