// Package simnode simulates a data centre in one process: thousands of Nodes, labelled and sized like GPU machines.
// Pods bound to them "run" for as long as an annotation says and then exit with the code that another one says; nothing
// is executed, no image is pulled, and no node sends heartbeats.
//
// The package reports what a kubelet reports: phases, conditions, container states, restarts with backoff, addresses,
// graceful deletion. It is level-triggered: decide is a pure function from the present pod to the status that it should
// have and the time of the next change; the rest feeds that function and writes its results. All state is in API
// objects, so a restarted process continues where the last one ended.
//
// It drives the pods on Nodes with the label muster.dev/simulated=true, whoever created them. Deleting the Node, or
// setting its Ready condition to Unknown, simulates the loss of a machine: its pods stay as they are until a controller
// of the cluster gives them up, or the machine is back. (A kubelet whose node is merely not Ready still reports its
// pods, and so does this package.)
//
// Not simulated: init containers take no time and always succeed; all containers of a pod end together; a restart rule
// that asks to restart all containers restarts the one that matched; there are no logs and no exec.
//
// The command that assembles the embedded cluster calls it, and tests do. It knows nothing of Muster's own APIs.
package simnode
