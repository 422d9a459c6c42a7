// Package keptqueues keeps the ClusterQueues that nobody writes: the queue default, as large as its nodes, and one for each Queue of
// Volcano. Each is looked at on its own, apart from the loop that admits, to which they are queues like any other.
package keptqueues
