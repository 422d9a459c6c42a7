// Package admission measures how fast the operator admits Workloads on a control plane without nodes: a load of
// Workloads without owners, compared to the floor that the API server sets, and a restart among 50,000 of them. The
// benchmark starts the operator as a child process, so that the floor can be measured without it. Its tests need the
// build tag bench.
package admission
