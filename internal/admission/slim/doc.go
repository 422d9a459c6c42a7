// Package slim is what the operator's cache keeps of Nodes, Pods and Workloads, which are the most of what a cluster has: what nobody
// reads of them is dropped, and what many have in common is there once.
package slim
