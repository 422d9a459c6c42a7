package find

import (
	"math"

	"github.com/musterhq/muster/internal/engine/place"
)

// maxRules is how many bounds of the pod sets of one workload a search respects. kube-scheduler alone keeps the others.
const maxRules = 32

// bounding is what a search needs to respect bounds. A search without bounds has none.
type bounding struct {
	places *place.Map
	rules  []rule
	// limits are the most pods of the workload on some nodes, keptBy the places that its pods keep.
	limits []place.NodeCount
	kept   []place.Assignment
	// placedOn is how many pods have places on each node: pods that keep their places, and pods for which the search has
	// found places.
	placedOn map[string]placed
	// shares says, for this attempt, how many pods each eligible domain of an Even rule gets at least.
	shares []int32
	// looked is how many domains the search has compared with limits, and how many places it has counted for rules.
	looked int
}

// rule is a bound of a pod set.
type rule struct {
	*place.Bound
	owner *want
	// counted says of each ask, by its index, whether its pods count.
	counted []bool
	// eligible are the domains of Even, by label value.
	eligible map[string]bool
	// pods is how many pods count in all once the workload has its places.
	pods int64
	ruleSums
}

const (
	// mostDivisions bounds how many divisions of the pods among eligible domains are tried.
	mostDivisions = 24
	// mostLooked bounds what a search does for bounds, to some tens of milliseconds. The first way of placing the asks is
	// tried to its end nevertheless.
	mostLooked = 1_000_000
	// looksPerNode is how many comparisons with limits cost as much as counting the pods that fit on one node.
	looksPerNode = 4
)

// exhausted reports whether the search has done what it may do for bounds.
func (b *bounding) exhausted() bool { return b != nil && b.looked > mostLooked }

// divisions yields the shares to try for the rules Even: first none, which fills the fewest domains. Where that does
// not do, each eligible domain gets a share, the largest first, so that the fullest domain may hold more.
func (b *bounding) divisions(try func() bool) bool {
	defer clear(b.shares)
	clear(b.shares)
	if try() {
		return true
	}
	for step, left := int64(0), mostDivisions; ; step++ {
		any := false
		for only := -1; only < len(b.rules); only++ { // -1: all rules at once
			clear(b.shares)
			set := 0
			for i, r := range b.rules {
				if share := r.largestShare() - step; share > 0 && (only < 0 || only == i) {
					b.shares[i] = int32(min(share, math.MaxInt32))
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
		if r.Kind == place.Even {
			out++
		}
	}
	return out
}

// largestShare returns how many pods each eligible domain can get at most, if all get the same.
func (r *rule) largestShare() int64 {
	if r.Kind != place.Even || len(r.eligible) == 0 || r.MinDomains > 1 {
		return 0
	}
	return r.pods / int64(len(r.eligible))
}

// keepsBounds reports whether the places that were counted keep all bounds, whatever the layouts: labels that are no
// level of the topology are not limited while places are searched.
func (b *bounding) keepsBounds() bool {
	if b == nil {
		return true
	}
	for i := range b.rules {
		r := &b.rules[i]
		b.looked += len(r.own) + len(r.all)
		if !r.isKept() {
			return false
		}
	}
	return b.keepsLimits()
}

// isKept reports whether the places keep the rule.
func (r *rule) isKept() bool {
	switch r.Kind {
	case place.Apart:
		return r.keepsApart()
	case place.Together:
		return r.ownOutside == 0 && r.keepsTogether()
	}
	return r.ownOutside == 0 && r.keepsEven()
}

// keepsApart checks a rule Apart, for the pods of the pod set that keep their places too.
func (r *rule) keepsApart() bool {
	most := int64(0)
	if r.CountsPodsOf(r.owner.PodSet) {
		most = 1
	}
	for _, own := range []domainSums{r.own, r.ownKept} {
		for value := range own {
			if r.all[value] > most {
				return false
			}
		}
	}
	return true
}

// keepsTogether checks a rule Together: beside each pod is one of another pod set, or one that was there before; or
// else all pods that count are in one domain.
func (r *rule) keepsTogether() bool {
	self := r.CountsPodsOf(r.owner.PodSet)
	alone := false
	for value, pods := range r.own {
		others := r.all[value]
		if self {
			others -= pods
		}
		if others == 0 && r.kept[value] == 0 {
			alone = true
		}
	}
	return !alone || self && len(r.all) == 1
}

// keepsEven checks a rule Even.
func (r *rule) keepsEven() bool {
	fewest := int64(0)
	if r.MinDomains <= 1 {
		fewest = math.MaxInt32
		for value := range r.eligible {
			fewest = min(fewest, r.all[value])
		}
	}
	for value := range r.own {
		if r.all[value]-fewest > int64(r.MaxSkew) {
			return false
		}
	}
	return true
}

// keepsLimits reports whether no node has more pods of the workload than its limit, unless they keep their places.
func (b *bounding) keepsLimits() bool {
	b.looked += len(b.limits)
	for _, limit := range b.limits {
		if on := b.placedOn[limit.Node]; on.found > 0 && on.kept+on.found > int64(limit.Count) {
			return false
		}
	}
	return true
}
