// Command muster is what people type: it starts a cluster on this machine, shows which jobs run, which wait and why,
// and carries the real kubectl. Installed as kubectl-muster it is the plugin `kubectl muster`.
//
// The program is wiring only. `command` holds one file a command; `localcluster` finds and runs muster-local;
// `observe` reads the API server; `view` turns what was read into values that answer "is it running, and if not, why",
// without I/O; `show` prints those values; `demo` plays the examples. None of them writes to a cluster but `demo`.
package main
