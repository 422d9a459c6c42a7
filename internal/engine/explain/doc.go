// Package explain says why a workload waits, and what would have to happen for it to run. It evaluates the workload as
// the next pass would, reads of the engine what its View has, and undoes whatever it tried.
package explain
