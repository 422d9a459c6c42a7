// Package jobset measures what JobSets cost: writes to the API server, and the time until all their Jobs exist,
// compared to a floor in the same run. There are no nodes, and the benchmark plays the Job controller (managedBy), so
// that apart from the benchmark only the operator writes. Its tests need the build tag bench.
package jobset
