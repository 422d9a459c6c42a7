// Package crdwatch reads custom resources from watches at a fraction of what client-go takes for them. What Kubernetes itself
// defines comes as protobuf; custom resources come as JSON, and client-go goes through each of their events some eight times: to find
// where it ends, what it is, and whether it is well formed, and the same again for the object within. Here it is gone through once or
// twice. A Muster that has started hears of every Workload there is, and of three changes for each that it admits.
package crdwatch
