// Package indexes has the indexes of the operator's cache by which admission finds the users of an object, such as the
// Workloads of a queue.
package indexes
