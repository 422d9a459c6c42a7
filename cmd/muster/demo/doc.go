// Package demo plays the examples on a cluster of its own: it starts one, applies the manifests in order, shows queues
// and jobs until all are done, checks that each ended as it should, and stops the cluster. Only the command `muster
// demo` may call it. It knows no job by name: what it plays is what lies in examples/.
package demo
