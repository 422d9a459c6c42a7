// Package controlplane runs a Kubernetes control plane inside this process: etcd, kube-apiserver, kube-scheduler and
// kube-controller-manager, each from its own library and configured by its own flags, so that knowledge of these
// components applies here.
//
// In one process they need half the memory of four, and they need not find each other through files and ports. The
// price is that a process has one set of feature gates, one klog and one metrics registry, and so can run only one
// control plane during its life.
//
// Package lifecycle calls it. It must not depend on nodes, on Muster's operator, or on the terminal.
package controlplane
