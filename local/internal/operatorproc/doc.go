// Package operatorproc runs Muster's operator as a child process: it starts it, waits until it is ready, restarts it
// when it dies, and stops it. The child never outlives this process.
//
// Package lifecycle calls it. It knows the operator's flags and its /readyz, and nothing of what the operator does.
package operatorproc
