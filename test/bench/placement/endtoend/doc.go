// Package endtoend measures the cost of placing pods on 500 simulated nodes of 8 GPUs with the real
// kube-scheduler, compared to a floor: the same pods without Muster, in the same run. Its tests need the
// build tag bench.
package endtoend
