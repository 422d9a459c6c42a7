// Package supervise decides what an agent does. It is a state machine whose inputs are the operator's answers, the ends
// of commands, signals and timers, and whose outputs are actions. It starts no process, opens no connection and has no
// clock.
package supervise
