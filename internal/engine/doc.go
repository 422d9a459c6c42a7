// Package engine decides who runs, where and how large. It is a value with two
// verbs: Apply takes an event, Decide takes the time and returns what should
// change. Nothing in it, nor in its sub-packages, does I/O, reads a clock, draws a
// random number or depends on the order of a map, so the same events give the
// same decisions live, in a simulation and in a replay.
//
// The admission package feeds it with what the API server says and writes what it
// decides. The engine must never know a job API or a client. It holds no locks:
// one goroutine owns it.
package engine
