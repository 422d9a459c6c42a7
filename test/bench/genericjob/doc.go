// Package genericjob measures what GenericJobs cost: writes of many small ones, and time of a large one. Nothing imports
// it.
package genericjob
