// Package scenario has the end-to-end tests: they run the operator as users do, on the embedded control plane with
// simulated nodes, and check what jobs, queues and pods become.
package scenario
