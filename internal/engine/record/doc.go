// Package record writes the events and decisions of an engine to a decision log, and replays it: an engine that gets
// the same events makes the same decisions, byte for byte. A log that does not replay shows a defect of the engine,
// and one that does shows each step that led to a decision.
//
// A log is lines of JSON. A run begins with a line that has the engine's options, followed, in order, by the events
// and the passes with their decisions. A restarted engine begins a new run, in the same file or in another. The
// admission package writes logs with Log; the command line replays them with Replay. `make scene` reads one with
// Read, and writes it as a scene of the engine.
package record
