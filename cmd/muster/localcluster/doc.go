// Package localcluster finds and runs muster-local, the program beside this one that runs a cluster: where it is, where
// it keeps its state, whether it is running, and how to run it as a child until it is ready. Commands and the demo call
// it. It never talks to an API server and knows nothing of the parts of the control plane.
package localcluster
