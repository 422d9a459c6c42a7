// Package simnode is a data centre of machines that do not exist: thousands of Nodes, labelled and sized like GPU
// machines, in one process. Pods that are bound to them "run" for as long as an annotation says and then exit with the
// code another one says; nothing is executed, no image is pulled, and no node sends heartbeats.
//
// What a kubelet reports, this package reports: phases, conditions, container states, restarts with back-off,
// addresses, graceful deletion. How it gets there is level-triggered: decide is a pure function from what a pod is now
// to the status it should have and the time to look again; everything else here feeds that function and writes what it
// says. State is in the API objects alone, so a process that starts again goes on where the last one ended.
//
// Which pods are driven: those on a Node with the label muster.dev/simulated=true, whoever created it. Deleting the
// Node, or setting its Ready condition to Unknown, is what losing a machine looks like: its pods stay as they are until
// a controller of the cluster gives them up, or the machine is back. (A kubelet whose node is merely not Ready still
// speaks for its pods, and so do we.)
//
// Not simulated: init containers take no time and always succeed; all containers of a pod end together; a restart rule
// that asks to restart all containers restarts the one that matched; there are no logs and no exec.
//
// Called by the command that assembles the embedded cluster, and by tests. It must never know about Muster's own
// APIs: to it, a pod is a pod.
package simnode
