package place

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A bound is a constraint between the pods of one workload that kube-scheduler enforces as well, by the labels of pods:
// required anti-affinity and affinity, and hard spread constraints. A pod is sent to one node, so kube-scheduler could only
// refuse it there. Places therefore respect the bounds from the start. For example two pods that must be apart by host
// name get two nodes, although one node could hold both.

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
	// Counts are the pod sets whose pods count, sorted; with Even the pod set itself is one of them.
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

// counts reports whether the pods of the pod set count.
func (b *Bound) counts(podSet string) bool { return slices.Contains(b.Counts, podSet) }

// maxRules is how many bounds of the pod sets of one workload a search respects. kube-scheduler alone keeps the others.
const maxRules = 32

// bounding is what a search needs to respect bounds. A search without bounds has none.
type bounding struct {
	rules []rule
	// limits are the most pods of the workload on some nodes, keptBy the places that its pods keep.
	limits []NodeCount
	keptBy []Assignment
	// placedOn is how many pods have places on each node: kept ones, and those that the search has found.
	placedOn map[string]placed
	// shares says, for this attempt, how many pods each eligible domain of an Even rule gets at least.
	shares []int32
	// looked is how many domains the search has compared with limits, and how many places it has counted for rules.
	looked int
}

// rule is a bound of a pod set.
type rule struct {
	*Bound
	owner *want
	// counted says of each ask, by its index, whether its pods count.
	counted []bool
	// eligible are the domains of Even, by label value.
	eligible map[string]bool
	// pods is how many pods count in all once the workload has its places.
	pods int64
	ruleSums
}

// bind prepares the search for the bounds of its asks.
func (m *Map) bind(f *search) {
	if !slices.ContainsFunc(f.wants, func(w *want) bool { return len(w.Bounds) > 0 || len(w.Limits) > 0 }) {
		return
	}
	b := &bounding{}
	for _, w := range f.wants {
		w.bounding, w.on = b, f
		if len(b.limits) == 0 {
			b.limits = w.Limits
		}
		if len(b.keptBy) == 0 {
			b.keptBy = w.Kept
		}
	}
	for _, w := range f.wants {
		for i := range w.Bounds {
			r := rule{Bound: &w.Bounds[i], owner: w}
			if slices.ContainsFunc(b.rules, func(known rule) bool { return known.owner.PodSet == w.PodSet && known.same(r.Bound) }) {
				continue // another gap of the same pod set
			}
			if len(b.rules) == maxRules {
				break
			}
			if r.Kind == Even {
				r.eligible = m.eligible(w, r.Bound)
				r.pods = f.countIn(b, r.Bound)
			}
			b.rules = append(b.rules, r)
		}
	}
	m.countKept(f, b)
	b.shares = make([]int32, len(b.rules))
	f.bounding = b
}

// same reports whether two bounds ask the same.
func (b *Bound) same(other *Bound) bool {
	return b.Kind == other.Kind && b.Key == other.Key && b.MaxSkew == other.MaxSkew && b.MinDomains == other.MinDomains &&
		b.AllNodes == other.AllNodes && b.Untainted == other.Untainted && slices.Equal(b.Counts, other.Counts)
}

// countIn returns how many pods count for a bound in all: those that keep their places and those that are asked for.
func (s *search) countIn(b *bounding, by *Bound) int64 {
	var sum int64
	for _, a := range b.keptBy {
		if by.counts(a.PodSet) {
			for _, at := range a.Nodes {
				sum += int64(at.Count)
			}
		}
	}
	for _, w := range s.wants {
		if by.counts(w.PodSet) {
			sum += int64(w.Count)
		}
	}
	return sum
}

// eligible returns the domains that kube-scheduler compares for a spread constraint, by label value.
func (m *Map) eligible(w *want, b *Bound) map[string]bool {
	f := m.filter(w.Ask, w.filterKey())
	m.counted += len(m.slots)
	out := map[string]bool{}
	for _, n := range m.slots {
		if n == nil || !n.exists {
			continue
		}
		if value, has := n.Labels[b.Key]; has && !out[value] && w.hasSpreadKeys(n) && (b.AllNodes || m.selects(f, n)) && (!b.Untainted || f.toleratesAll(n)) {
			out[value] = true
		}
	}
	return out
}

// hasSpreadKeys reports whether the node has the labels of all spread constraints of the pods.
func (w *want) hasSpreadKeys(n *node) bool {
	return !slices.ContainsFunc(w.Bounds, func(b Bound) bool { return b.Kind == Even && !hasLabel(n, b.Key) })
}

// selects reports whether the pods' selector and affinity, with the labels of their flavor, allow the node.
func (m *Map) selects(f *filter, n *node) bool {
	if !within(f.flavor.NodeLabels, n.Labels) || !within(f.selector, n.Labels) {
		return false
	}
	if !f.hasAffinity {
		return true
	}
	node := &corev1.Node{}
	node.Name, node.Labels = n.Name, n.Labels
	ok, err := f.affinity.Match(node)
	return ok && err == nil
}

// toleratesAll reports whether the pods tolerate all taints of the node, and so that of a cordoned one.
func (f *filter) toleratesAll(n *node) bool {
	return !slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !f.tolerance.Tolerates(&t)
	})
}

const (
	// tried bounds how many divisions of the pods among eligible domains are tried.
	tried = 24
	// mostLooked bounds what a search does for bounds, to some tens of milliseconds. The first way of placing the asks is
	// tried to its end nevertheless.
	mostLooked = 1_000_000
	// looksPerNode is how many comparisons with limits cost as much as counting the pods that fit on one node.
	looksPerNode = 4
)

// exhausted reports whether the search has done what it may do for bounds.
func (b *bounding) exhausted() bool { return b != nil && b.looked > mostLooked }

// divisions yields the shares to try for the rules Even: first none, which fills the fewest domains. Where that does not
// do, each eligible domain gets a share, the largest first, so that the fullest domain may hold more.
func (b *bounding) divisions(try func() bool) bool {
	defer clear(b.shares)
	clear(b.shares)
	if try() {
		return true
	}
	for step, left := int64(0), tried; ; step++ {
		any := false
		for only := -1; only < len(b.rules); only++ { // -1: all rules at once
			clear(b.shares)
			set := 0
			for i, r := range b.rules {
				if share := r.largestShare() - step; share > 0 && (only < 0 || only == i) {
					b.shares[i] = int32(min(share, cap32))
					set++
				}
			}
			if set == 0 || only >= 0 && set == 1 && b.evens() == 1 {
				continue
			}
			any = true
			if left--; left < 0 || b.exhausted() {
				return false
			}
			if try() {
				return true
			}
		}
		if !any {
			return false
		}
	}
}

// evens counts the rules Even.
func (b *bounding) evens() (out int) {
	for _, r := range b.rules {
		if r.Kind == Even {
			out++
		}
	}
	return out
}

// largestShare returns how many pods each eligible domain can get at most, if all get the same.
func (r *rule) largestShare() int64 {
	if r.Kind != Even || len(r.eligible) == 0 || r.MinDomains > 1 {
		return 0
	}
	return r.pods / int64(len(r.eligible))
}
