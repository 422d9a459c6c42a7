// Command muster is the command line for users: it starts a cluster on this machine, lists jobs and queues, explains
// why a job waits, and embeds the real kubectl. Installed as kubectl-muster it is the plugin `kubectl muster`.
//
// Package main only starts the program. Package command has one file for each command; localcluster finds and runs
// muster-local; observe reads the API server; view derives, without I/O, what is running and why the rest is not; show
// prints the result; demo plays the examples. Only demo writes to a cluster.
package main
