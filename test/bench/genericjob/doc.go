// Package genericjob measures what GenericJobs cost: the writes of many small jobs, and the time of a large one. Its
// tests need the build tag bench.
package genericjob
