// Package process runs commands one after the other, each in a process group of its own that is killed when this
// process dies, and does the duties of init: orphans are reparented to this process and reaped here. Nothing else in
// this process may start children, because only this package may wait for them.
package process
