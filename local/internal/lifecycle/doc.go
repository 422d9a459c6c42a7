// Package lifecycle starts and stops a local cluster: the state directory, the control plane, the nodes and the
// operator, in this order, and stops them in reverse.
//
// The command line calls it. It knows the dependencies between the parts and what the user is told; it must not know
// how any part works.
package lifecycle
