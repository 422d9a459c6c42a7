// Package process runs one command after the other, each in a process group of its own
// that dies with this process, and takes the place of init for all that they leave
// behind: orphans come to this process and are reaped here. It alone may wait for
// children of this process, so nothing else in it may start any.
package process
