// Package statedir manages the state directory of a local cluster: the paths of its files, which process holds it, and
// how the holder is asked to stop.
//
// One process at a time claims the directory, by a record lock. The kernel drops the lock when that process ends,
// however it ends, and reports the owner's PID; so a stale file cannot make a free directory look taken, nor an
// unrelated PID look like the holder's.
//
// The command line and package lifecycle call it. It knows nothing of what runs in the directory.
package statedir
