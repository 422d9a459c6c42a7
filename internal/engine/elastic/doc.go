// Package elastic decides the sizes of jobs that can run at several sizes: Policy.Grow chooses which ones grow into
// free capacity, one replica at a time, and Policy.Yielding in which order jobs give replicas back.
//
// It is pure: it knows jobs, their sizes and a speed for each size, and asks its caller whether there is capacity.
// The engine and the simulation call it. It must not know quota or nodes.
package elastic
