// Package lifecycle brings up a local cluster and takes it down: the state
// directory, the control plane, the nodes and the operator, in this order,
// and back in the reverse one.
//
// Called by the command line. It knows in which order things depend on each
// other, and the words the user is told; never how any of them works.
package lifecycle
