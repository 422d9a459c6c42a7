// Package flavor chooses a ResourceFlavor for every pod set of a workload and every resource that it requests: the
// first in the queue's list whose taints the pods tolerate, whose labels their selectors match, and that has quota.
//
// A Form holds everything about the choice that does not depend on usage; a Question adds what does, and a Choice is
// the result. Only the engine calls it. It changes nothing.
package flavor
