package place

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/order"
)

// Hostname is the node label whose value names a node in a place, and by which pods are sent there. A node without the
// label is named by its metadata.name, and gets no places.
const Hostname = corev1.LabelHostname

// Pods is the resource of which every pod uses one.
const Pods = string(corev1.ResourcePods)

// Node holds the properties of a node that placement depends on.
type Node struct {
	// Name is the node's metadata.name, to which pods are bound. Places name a node by its Hostname label,
	// which may differ.
	Name   string
	Labels map[string]string
	Taints []corev1.Taint
	// Allocatable holds amounts in the units of package quota, Pods included. A missing resource is zero.
	Allocatable map[string]int64
	// Cordoned nodes accept no new pods; pods already there stay.
	Cordoned bool
	// Failed nodes have lost the pods that were on them.
	Failed bool
}

// Topology is a list of node labels, from the widest to the narrowest, that says how near nodes are to each other.
type Topology struct {
	Name string
	// Levels are node labels, the widest level first. A node that lacks one of them is outside of the
	// topology.
	Levels []string
}

// Flavor holds the properties of a ResourceFlavor that placement depends on.
type Flavor struct {
	Name string
	// Topology is empty if pods of the flavor are not placed on nodes.
	Topology    string
	NodeLabels  map[string]string
	Tolerations []corev1.Toleration
}

// HostPort is a port that a pod occupies on its node.
type HostPort struct {
	// IP is empty or 0.0.0.0 for all addresses of the node; an empty Protocol means TCP.
	IP       string
	Protocol corev1.Protocol
	Port     int32
}

// Pod is a pod, of any owner, that is bound to a node and has not ended.
type Pod struct {
	Key  order.Key
	Node string
	// Requests holds amounts in the units of package quota.
	Requests  map[string]int64
	HostPorts []HostPort
	// Workload and PodSet are the pod's owner; they are zero if the engine does not know the owner.
	Workload order.Key
	PodSet   string
	// Part is the part of the pod set that the pod belongs to.
	Part Part `json:",omitzero"`
	// Rank is the pod's rank within its part, if HasRank is set. It decides which places are left to a
	// missing pod, but a pod may be at any place of its part.
	Rank    int32 `json:",omitempty"`
	HasRank bool  `json:",omitempty"`
	// ExclusiveKey is the node label whose domain the pod's job has to itself, empty if it shares. It counts only if the
	// Workload holds places for the pod set that are exclusive by the same label.
	ExclusiveKey string
	// Terminating is set only for unpinned pods: the pod is being deleted. It uses its node until it is
	// gone, and its replacement needs another place.
	Terminating bool `json:"Goes,omitzero"`
	// Resident pods stay even if all work has ended: pods of DaemonSets and of services, and static pods.
	Resident bool
}

// Part is a range of ranks of a pod set that certain pods have to themselves, as each Job of a JobSet has:
// a pod never uses a place of another part. The zero value stands for all ranks.
type Part struct {
	// From is the first rank and To the one after the last. Both are 0 if the range follows from Index and
	// Of: the part with that index of Of parts of equal size.
	From, To  int32 `json:",omitempty"`
	Index, Of int32 `json:",omitempty"`
}

// ranks returns the range of ranks of the part, of `all` ranks in total; to is exclusive.
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
	// Level is the node label of the level at which each part must lie in one domain.
	Level string
	// Size is the number of pods of a part; the last part may have fewer.
	Size int32
}

// Ask is a request of places for the pods of one pod set.
type Ask struct {
	PodSet, Flavor string
	Count          int32
	// PerPod holds the requests of one pod, in the units of package quota.
	PerPod    map[string]int64
	HostPorts []HostPort
	// Tolerations, NodeSelector and Affinity are the pod template's. This package adds what the flavor has.
	Tolerations  []corev1.Toleration
	NodeSelector map[string]string
	Affinity     *corev1.NodeAffinity
	// OtherLabels is the part of NodeSelector that the pods do not ask for: labels of their other flavors.
	OtherLabels map[string]string
	// NodeName is the template's spec.nodeName (a metadata.name), empty for most pods: the only node that
	// the pods can use. kube-scheduler is not involved with such pods, and the kubelet rejects them if
	// another node was chosen.
	NodeName string
	// Unpinned pods are not bound to their places by a node selector: kube-scheduler chooses among the nodes that their
	// own selector allows. For each unpinned pod that runs elsewhere, one of the places without a pod is free.
	Unpinned bool
	// Level is the node label of the level whose single domain must (Mandatory) or should hold all pods;
	// empty if the pods may be anywhere.
	Level string
	// Mandatory is set for podset-required-topology, and false for podset-preferred-topology, for which the pods may
	// also be in a wider domain, or anywhere.
	Mandatory bool
	// Slices are layers of parts that each lie within one domain, the coarsest layer first.
	Slices []Slice
	// Group is shared by asks that get one domain of Level together, as a leader and its workers do.
	Group string
	// ExclusiveKey is a node label: each part of the coarsest layer, or the whole pod set if there are no
	// slices, is alone in its domain of that label. The domain holds no other exclusive part, by whatever
	// label, and does not lie in the domain of another. Pods that are not exclusive do not count.
	ExclusiveKey string
	// Bounds limit which domains the pods may use beside other pods of the workload. Kept are the places that pods of the
	// workload keep, which count for bounds. Limits are the most pods of the workload on some nodes, for each of which
	// kube-scheduler refused more.
	Bounds []Bound      `json:",omitempty"`
	Kept   []Assignment `json:",omitempty"`
	Limits []NodeCount  `json:",omitempty"`
	// Avoid lists nodes, by their names in places, that kube-scheduler has refused for reasons of its own.
	// Domains with several of them are tried last.
	Avoid []string
}

// NodeCount is a number of pods on a node, which goes by its name in places.
type NodeCount struct {
	Node  string
	Count int32
}

// Assignment holds the nodes of a pod set in the order of ranks: the first pods go to the first node.
// Parts follow one after the other.
type Assignment struct {
	PodSet string
	Nodes  []NodeCount
}

// Ledger selects what counts as used.
type Ledger int

const (
	// Now counts pods that are present, held places and nominated places. What fits here can be admitted.
	Now Ledger = iota
	// Planned counts the same, except for workloads that are being evicted. What fits here can be nominated.
	Planned
)

// HeldPodSet holds the places of one pod set. A place that has its pod is not counted besides the pod.
type HeldPodSet struct {
	// Ask is what the places were found for; Repair uses it to find others.
	Ask   Ask
	Nodes []NodeCount
	// Ended is the number of pods that have ended and need no place any more, so that as many places without a pod need no
	// repair. The empty places are free once they are no more than Ended. As long as they are more, it is unknown which
	// places belong to ended pods.
	Ended int32
	// Excess counts pods, present or still expected, that are beyond these places and were asked to end.
	// The Planned ledger leaves them out.
	Excess []NodeCount
}

// Holding is the places of a workload.
type Holding struct {
	PodSets []HeldPodSet
	// Nominated: the workload may not use the places yet. Its pods that are present belong to an earlier admission and are
	// terminating.
	Nominated bool
	// Leaving: the workload is being evicted, so all of its pods are terminating.
	Leaving bool
}

// podsLeaving reports whether the pods that are present are on their way out.
func (h *Holding) podsLeaving() bool { return h.Leaving || h.Nominated }
