// Package localcluster knows the muster-local program that stands beside this one: where it is, where it keeps its
// state, whether it runs, and how to run it as a child until it is ready. Commands and the demo may call it. It never
// talks to an API server and knows nothing of what the control plane is made of.
package localcluster
