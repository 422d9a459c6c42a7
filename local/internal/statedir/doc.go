// Package statedir is the directory a local cluster lives in: where its files
// are, who holds it, and how the holder is asked to leave.
//
// The directory is claimed by one process at a time. The claim is a record
// lock that the kernel drops when that process ends, however it ends, and of
// which the kernel tells the owner's pid; so no stale file can make a free
// directory look taken, nor a stranger's pid look like the holder's.
//
// Called by the command line and by lifecycle. It must never know what runs
// in the directory.
package statedir
