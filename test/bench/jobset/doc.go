// Package jobset measures what JobSets cost: writes to the API server, and the time until all their Jobs are there, beside
// the floor of the same run. There are no nodes, and the Jobs are managed by the benchmark, which says how they fare: so
// nobody else writes but the operator.
package jobset
