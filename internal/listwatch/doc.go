// Package listwatch lists and watches what the cache of an operator has, or of a command that follows a cluster, at a fraction of what it
// takes by client-go. A Muster that starts hears of every Workload and every pod there is, and of three changes for each Workload that it
// admits. It knows of no kind more than how it is read; who makes the cache says what else matters.
//
// What there is at first comes as a list that is read object by object: no list is ever held, and the API server is spared what it takes
// to make events of all of it.
//
// What Kubernetes itself defines comes as protobuf. Custom resources come as JSON, and client-go goes through each of their events some
// eight times: to find where it ends, what it is, and whether it is well formed, and the same again for the object within. Here it
// is gone through once or twice.
//
// A single object that its type in Go cannot hold would keep all others of its kind from being read, for as long as it is there. It is
// passed over, and told of by the log and a metric, unless its API group is one that is to be read whole or not at all.
package listwatch
