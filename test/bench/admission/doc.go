// Package admission measures how fast the operator admits Workloads, on a control
// plane without nodes: a load of bare Workloads beside the floor that the API server
// sets, and a restart among very many. The operator is a child of the benchmark, so
// that the floor can be measured without it. Its tests need the build tag bench.
package admission
