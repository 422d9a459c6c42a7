// Package flavor chooses, for every pod set of a workload and every resource it
// asks for, the ResourceFlavor that serves it: the first of the queue's list that
// the pods tolerate, that their selectors allow, and that has the quota.
//
// It is called by the engine only. It is given the quota that is left as a
// question to ask, and changes nothing.
package flavor
