package place

import (
	"fmt"
	"slices"
)

// A bound is a constraint between the pods of one workload that kube-scheduler enforces as well, by the labels of pods:
// required anti-affinity and affinity, and hard spread constraints. A pod is sent to one node, so kube-scheduler could
// only refuse it there. Places therefore respect the bounds from the start. For example two pods that must be apart by
// host name get two nodes, although one node could hold both.

// BoundKind says what a bound asks.
type BoundKind string

// The kinds of bounds.
const (
	// Apart: a domain with a pod of the pod set holds no other pod that counts.
	Apart BoundKind = "Apart"
	// Together: a domain with a pod of the pod set holds a pod that counts. The first pods of a pod set that counts itself
	// choose the domain.
	Together BoundKind = "Together"
	// Even: a domain with a pod of the pod set holds at most MaxSkew pods that count more than the eligible domain with
	// the fewest.
	Even BoundKind = "Even"
)

// Bound is a limit of the domains of a node label that the pods of a pod set may use beside other pods of the workload.
type Bound struct {
	Kind BoundKind
	// Key is the node label whose values are the domains. Nodes without it are no domain: pods that must be apart may use
	// them, others not.
	Key string
	// Counts are the pod sets whose pods count, sorted. With Even the pod set itself counts too.
	Counts []string
	// MaxSkew and MinDomains belong to Even. With MinDomains above one, the fewest pods of a domain count as none:
	// kube-scheduler sees a single domain once a pod is sent to one node.
	MaxSkew    int32 `json:",omitempty"`
	MinDomains int32 `json:",omitempty"`
	// AllNodes makes nodes eligible that the pods do not select, Untainted only nodes whose taints the pods tolerate.
	AllNodes  bool `json:",omitempty"`
	Untainted bool `json:",omitempty"`
}

// String returns the bound as a user finds it in the pod template.
func (b *Bound) String() string {
	switch b.Kind {
	case Apart:
		return "podAntiAffinity by " + b.Key
	case Together:
		return "podAffinity by " + b.Key
	}
	return fmt.Sprintf("topologySpreadConstraint by %s with maxSkew %d", b.Key, b.MaxSkew)
}

// CountsPodsOf reports whether the pods of the pod set count.
func (b *Bound) CountsPodsOf(podSet string) bool { return slices.Contains(b.Counts, podSet) }

// Same reports whether two bounds ask the same.
func (b *Bound) Same(other *Bound) bool {
	return b.Kind == other.Kind && b.Key == other.Key && b.MaxSkew == other.MaxSkew && b.MinDomains == other.MinDomains &&
		b.AllNodes == other.AllNodes && b.Untainted == other.Untainted && slices.Equal(b.Counts, other.Counts)
}
