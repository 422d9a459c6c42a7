// Package endtoend measures what it costs to have pods placed on nodes: on 500 simulated nodes of 8 GPUs and through the
// real kube-scheduler, beside the floor of the same run. Its tests need the build tag bench.
package endtoend
