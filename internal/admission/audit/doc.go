// Package audit compares, once a minute, what the engine counts with what the API's Workloads hold. A difference is a
// fault of Muster. It is reported in the log, in metrics and in the status of the queue, and nothing is changed.
package audit
