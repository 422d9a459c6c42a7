// Package engine decides which workloads run, on which nodes, and at what size. An Engine has two methods: Apply
// takes an event, and Decide takes the current time and returns the changes to make. Neither the package nor its
// sub-packages do I/O, read a clock, use random numbers, or depend on map iteration order, so the same events give
// the same decisions in a live operator, in a simulation and in a replay.
//
// The admission package feeds the Engine with what it observes on the API server and writes the Engine's decisions.
// The engine must not know any job API or client. It holds no locks: a single goroutine owns it.
package engine
