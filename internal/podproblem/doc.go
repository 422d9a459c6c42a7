// Package podproblem says what keeps a pod from being ready, from its status and from which of its claims exist, in one
// short text: muster explain shows it while the pod exists, and the message of an eviction keeps it once the pod is
// gone. It is pure.
package podproblem
