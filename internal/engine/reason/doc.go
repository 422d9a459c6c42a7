// Package reason says why a workload waits, as data: a code that people build
// alerts on, and the numbers behind it. Conditions, events and the command line
// print the same value, so that they never tell different stories.
//
// It is filled in by the engine's decisions and knows none of their state.
package reason
