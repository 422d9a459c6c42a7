// Package demo plays the examples on a cluster of its own: it starts one, applies the manifests in order, shows queues
// and jobs until all are done, checks that each ended as expected, and stops the cluster. Only the command `muster
// demo` calls it. It has no knowledge of particular jobs: it plays whatever is in examples/.
package demo
