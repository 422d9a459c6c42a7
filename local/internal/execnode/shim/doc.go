// Package shim is the first process of each container of an exec node. It creates the container's view of the machine
// (mounts, host name, /proc), runs commands in it for the node agent, reaps orphans, and kills everything in the
// container when it ends or the agent does.
//
// The agent starts this same binary with [Argv0] as its name and a socket as file descriptor 3. The package then takes
// over the process from an init function and never returns from it: it imports so little that it is initialised before
// the Kubernetes packages of the binary, which would cost each container some 30 ms and 60 MB.
//
// Only package process uses it. It must not import anything but the standard library and x/sys/unix, and knows nothing
// of Kubernetes.
package shim
