// Package slim reduces the memory of the operator's cache for Nodes, Pods, Workloads and batch Jobs, which are most of
// a cluster's objects: fields that nothing reads are dropped, and values that many objects have in common are interned.
package slim
