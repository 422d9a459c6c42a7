// Package reason describes as data why a workload waits: a Code that users can build alerts on, and the numbers
// behind it (Reason), or the full Explanation of one workload. Conditions, events and the command line print the same
// values, so that they always agree.
//
// The engine fills them in. The package must not know the engine's state.
package reason
