// Package calendar has the workloads that run in the order in which they are expected to end, and in the order in which
// they are stopped at their limits. Adding, removing and moving one takes time in proportion to the number of workloads
// at most for a copy of pointers. The package decides nothing.
package calendar
