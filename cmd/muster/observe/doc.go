// Package observe reads jobs and queues from the API server, once or continuously, into a view.Snapshot. Commands and
// the demo call it. It never writes and draws no conclusions.
package observe
