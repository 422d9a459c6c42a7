// Package size measures operators on a cluster of 15,000 Workloads and 20,000 pods: their memory, their CPU time while
// nothing changes, and the time to the first admission after the leader was killed and after an operator's start. Its
// tests need the build tag bench.
package size
