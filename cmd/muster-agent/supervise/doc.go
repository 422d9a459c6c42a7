// Package supervise decides what an agent does: a state machine that is told what the
// operator says, how the command fares and which signals come, and answers with what to
// do. It starts no process, opens no connection and has no clock.
package supervise
