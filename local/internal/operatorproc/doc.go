// Package operatorproc runs Muster's operator as a child process: starts it,
// waits until it says that it is ready, starts it again when it dies, stops
// it. The child never outlives this process.
//
// Called by lifecycle. It knows the operator's command line and its /readyz,
// and nothing of what the operator does.
package operatorproc
