// Package waiting has what a reconcile leaves for a later one: statuses and reports that can wait, events that are
// recorded once, and when to try again after an error. What is remembered of jobs is lost when the process ends; then
// something is written a second earlier, or an event is recorded again.
package waiting
