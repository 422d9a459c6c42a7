package fair

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Ranking keeps the children of cohorts in the order of their planned shares. A search for those with large shares
// computes again only what has changed since the last one. The zero value is empty and ready to use.
type Ranking struct {
	cohorts map[*quota.Node]*ranked
}

// ranked is the children of a cohort, in their order there. The one with the largest share is the first of byShare.
type ranked struct {
	children []*rankedChild
	byShare  order.Heap[*rankedChild]
}

// rankedChild is a node with its share as of a version.
type rankedChild struct {
	node    *quota.Node
	version int
	share   Share
	at      order.Place
}

// Above returns the children of the cohort whose share is larger than least, or equal if that is enough, in no
// particular order.
func (r *Ranking) Above(cohort *quota.Node, least Share, orEqual bool) (found []*quota.Node) {
	r.of(cohort).byShare.While(func(c *rankedChild) bool {
		by := c.share.Compare(least)
		above := by > 0 || by == 0 && orEqual
		if above {
			found = append(found, c.node)
		}
		return above
	})
	return found
}

// of returns the children of the cohort with their present shares.
func (r *Ranking) of(cohort *quota.Node) *ranked {
	known := r.cohorts[cohort]
	if known != nil && known.update(cohort.Children()) {
		return known
	}
	if r.cohorts == nil {
		r.cohorts = map[*quota.Node]*ranked{}
	}
	known = rank(cohort.Children())
	r.cohorts[cohort] = known
	return known
}

func rank(children []*quota.Node) *ranked {
	r := &ranked{byShare: order.NewHeap(
		func(a, b *rankedChild) bool { return a.share.Compare(b.share) > 0 },
		func(c *rankedChild) *order.Place { return &c.at },
	)}
	for _, n := range children {
		r.children = append(r.children, &rankedChild{node: n, version: n.Version() - 1}) // to be updated
	}
	r.update(children)
	return r
}

// update moves those whose share may have changed. It returns false if the cohort has other children now.
func (r *ranked) update(children []*quota.Node) bool {
	if !slices.EqualFunc(r.children, children, func(c *rankedChild, n *quota.Node) bool { return c.node == n }) {
		return false
	}
	for _, c := range r.children {
		if version := c.node.Version(); c.version != version {
			c.version, c.share = version, Of(c.node, quota.Planned, nil)
			r.byShare.Put(c)
		}
	}
	return true
}
