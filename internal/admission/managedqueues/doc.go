// Package managedqueues has the controllers of the ClusterQueues that the operator itself creates: the default queue,
// whose quota follows the nodes, and one for each Volcano Queue. To the admission loop they are queues like any other,
// and the controllers know nothing of the loop.
package managedqueues
