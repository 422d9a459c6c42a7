// Package record writes down what an engine hears and decides, and replays it: an
// engine that hears the same decides the same, byte for byte. A log that does not replay
// shows a fault of the engine, and one that does shows each step that led to a decision.
//
// A log is lines of JSON. The first one of a run has the engine's options; an engine that
// starts again begins a new run, in the same file or in another. Then follow, in order,
// the events and the passes with their decisions.
package record
