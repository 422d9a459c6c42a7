package place

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/order"
)

// Hostname is the label whose value names a node in a place. A node without it is
// named by its object's name.
const Hostname = corev1.LabelHostname

// Pods is the resource of which every pod takes one.
const Pods = string(corev1.ResourcePods)

// Node is a node as far as a place depends on it.
type Node struct {
	// Name is that of the object, by which pods are bound. Places name nodes by their
	// label Hostname, which may differ.
	Name   string
	Labels map[string]string
	Taints []corev1.Taint
	// Allocatable are amounts of package quota, Pods included: what is not there a node
	// has none of.
	Allocatable map[string]int64
	// Cordoned nodes take no new pods; those that are there stay.
	Cordoned bool
	// Failed nodes have lost the pods that are on them.
	Failed bool
}

// Topology is how nodes are near each other.
type Topology struct {
	Name string
	// Levels are node labels, the widest first. A node that lacks one of them is
	// outside of the topology.
	Levels []string
}

// Flavor is a ResourceFlavor as far as a place depends on it.
type Flavor struct {
	Name string
	// Topology is empty where the flavor is a matter of quota alone.
	Topology    string
	NodeLabels  map[string]string
	Tolerations []corev1.Toleration
}

// HostPort is a port of its node that a pod takes.
type HostPort struct {
	// IP is empty or 0.0.0.0 for all of the node's addresses; Protocol is empty for TCP.
	IP       string
	Protocol corev1.Protocol
	Port     int32
}

// Pod is one that is bound to a node and has not ended, whosever it is.
type Pod struct {
	Key  order.Key
	Node string
	// Requests are amounts of package quota.
	Requests  map[string]int64
	HostPorts []HostPort
	// Workload and PodSet tell whose it is, zero for nobody that the engine knows.
	Workload order.Key
	PodSet   string
	// Part is which part of its pod set the pod is of.
	Part Part `json:",omitzero"`
	// ExclusiveKey is the node label of the domain that the pod's job has for itself,
	// empty for one that shares.
	ExclusiveKey string
	// Goes tells of a pod that is loose that it is being deleted: it takes its room until it is gone, and another comes for it.
	Terminating bool `json:"Goes,omitzero"`
	// Resident tells that it stays though all work ended, as pods of a DaemonSet, static pods
	// and those of services do.
	Resident bool
}

// Part is the ranks of a pod set that some of its pods have for themselves, as each Job of a
// JobSet has: none of them uses a place of another's. The zero value is all of them.
type Part struct {
	// From and To bound the ranks, To beyond the last; 0 and 0 where they follow from the
	// others: the part is one of so many of equal size, from 0.
	From, To  int32 `json:",omitempty"`
	Index, Of int32 `json:",omitempty"`
}

// ranks are those of the part where there are so many in all.
func (p Part) ranks(all int32) (from, to int32) {
	switch {
	case p.To > 0:
		return p.From, p.To
	case p.Of > 0 && all%p.Of == 0:
		return p.Index * (all / p.Of), (p.Index + 1) * (all / p.Of)
	}
	return 0, all
}

// Slice is one layer of equal parts of a pod set.
type Slice struct {
	// Level is the node label of the level whose one domain must hold each part.
	Level string
	// Size is the number of pods of a part; the last one may have fewer.
	Size int32
}

// Ask is a pod set that wants places.
type Ask struct {
	PodSet, Flavor string
	Count          int32
	// PerPod are amounts of package quota.
	PerPod    map[string]int64
	HostPorts []HostPort
	// Tolerations, NodeSelector and Affinity are the pod template's; what the flavor adds
	// is added here.
	Tolerations  []corev1.Toleration
	NodeSelector map[string]string
	Affinity     *corev1.NodeAffinity
	// NodeName is of the only node, by its object's name, that pods may be on that name it, empty for others: kube-scheduler is not
	// asked where they go, and the kubelet refuses them where anything else was chosen for them.
	NodeName string
	// Loose is of pods that nobody brings to their places: they go to whichever of the nodes that they choose kube-scheduler finds. A
	// place elsewhere without a pod, for each of them that is there, is nobody's.
	Unpinned bool
	// Level is the node label of the level whose one domain must (Mandatory) or should
	// hold all pods; empty if it does not matter.
	Level     string
	Mandatory bool
	// Slices are layers of parts that lie within one domain each, the coarsest first.
	Slices []Slice
	// Group is shared by asks that get one domain of Level together, as a leader and its
	// workers do.
	Group string
	// ExclusiveKey is a node label: each part of the coarsest layer, or else the whole
	// pod set, is alone in its domain of that label. No other part that is exclusive by
	// whatever label is in it, and it is in no other's domain. Pods that are not
	// exclusive do not matter.
	ExclusiveKey string
	// Avoid are nodes, as places name them, that are no good for reasons that only
	// kube-scheduler knows. What is near several of them is looked at last.
	Avoid []string
}

// NodeCount is so many pods on a node, by the name that places have for it.
type NodeCount struct {
	Node  string
	Count int32
}

// Assignment is where the pods of a pod set go: in the order of their ranks, so that
// the first pods go to the first node. Parts lie in it one after the other.
type Assignment struct {
	PodSet string
	Nodes  []NodeCount
}

// Ledger says what counts as taken.
type Ledger int

const (
	// Now: pods that are there, places of those who hold them, and promised places. What
	// fits here can be admitted.
	Now Ledger = iota
	// Planned: the same without those who were told to go. What fits here can be
	// promised.
	Planned
)

// HeldPodSet is the places of one pod set. Its pods that are present are not counted
// again.
type HeldPodSet struct {
	// Ask is what the places were found for; Repair looks for others by it.
	Ask   Ask
	Nodes []NodeCount
	// Ended is how many of the pods have ended and need no place any more: that many places
	// without a pod need not be mended. As soon as no more places than these are without a
	// pod they are free; as long as there are more, nobody says which they are.
	Ended int32
	// Leaves are pods beyond those places that were told to go, be they there or yet to come:
	// they are not in what is planned.
	Excess []NodeCount
}

// Holding is the places that a workload has.
type Holding struct {
	PodSets []HeldPodSet
	// Promised: it may not use them yet. Pods of it that are there are leaving: they are from
	// before.
	Promised bool
	// Leaving: it was told to go, and so was every pod of it.
	Leaving bool
}

// podsLeave reports whether the pods that are there are on their way.
func (h *Holding) podsLeaving() bool { return h.Leaving || h.Promised }
