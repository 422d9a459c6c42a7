package find

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// askGroup holds the asks that get one domain together: asks with the same Group, or a single ask.
type askGroup struct {
	wants []*want
	// depth is the depth of the domain. hasLevel is set if a level is asked for at all, mandatory if the domain
	// must not be wider.
	depth               int32
	mandatory, hasLevel bool
	within              int32
}

// disagrees returns an ask that cannot share a domain with the asks before it, and why; nil if there is none.
// Jobs of the kinds that Muster knows were checked before they were queued; Workloads of other controllers
// are checked here for the first time.
func (a *askGroup) disagrees() (*want, string) {
	var first *want // the first one with a level
	for _, w := range a.wants {
		switch {
		case w.layout != a.layout():
			return w, "are of different topologies"
		case w.Level == "":
		case first == nil:
			first = w
		case w.Level != first.Level || w.Mandatory != first.Mandatory:
			return w, "must ask for the same level, all of them as required or all as preferred"
		}
	}
	return nil, ""
}

// candidate is a domain that may hold a group, and the number of pods of the first ask that fit in it.
type candidate struct {
	domain int32
	pods   int64
}

func (a *askGroup) layout() *place.Layout { return a.wants[0].layout }

// widest returns the depth of the widest domains that may hold the group.
func (a *askGroup) widest() int32 {
	depth := a.layout().Depth(a.within)
	if a.hasLevel && a.mandatory {
		depth = max(depth, a.depth)
	}
	return depth
}

// candidates returns the domains of a depth that hold each ask of the group, domains with the fewest free places first
// and equal ones by name: so the last ones stay free, and whole, for longest. For a single ask, which fits in the first
// one if in any, it returns only that.
func (a *askGroup) candidates(depth int32) []candidate {
	if depth == a.layout().Bottom() && len(a.wants) == 1 && a.wants[0].podsOnly() {
		return a.tightestNode()
	}
	var out []candidate
	a.layout().Walk(a.within, depth, func(d int32) {
		pods, ok := a.fits(d)
		switch {
		case !ok:
		case len(a.wants) > 1 || len(out) == 0:
			out = append(out, candidate{d, pods})
		case pods < out[0].pods:
			out[0] = candidate{d, pods}
		}
	})
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(a.pods, b.pods) })
	return out
}

// tightestNode returns the node that an ask for single pods would fill best. It skips most domains by
// their sums and extremes, without looking at their nodes.
func (a *askGroup) tightestNode() []candidate {
	w := a.wants[0]
	if d := a.within; d < place.Outside {
		if w.pods(d) < int64(w.Count) {
			return nil
		}
		return []candidate{{d, w.pods(d)}}
	}
	best, fewest := candidate{domain: place.Outside}, int32(0)
	var visit func(d int32)
	visit = func(d int32) {
		if w.tally.sums[d] < int64(w.Count) {
			return
		}
		children := w.layout.Children(d)
		if w.layout.Depth(d) < w.layout.Lowest() {
			for _, child := range children {
				visit(child)
			}
			return
		}
		e := w.tally.extremesOf(d)
		if e.most < w.Count || best.domain != place.Outside && e.fewest >= fewest {
			return
		}
		at := place.Outside
		for _, child := range children {
			fits := w.tally.fits[place.NodeAt(child)]
			if fits >= w.Count && (at == place.Outside || fits < w.tally.fits[place.NodeAt(at)]) {
				if at = child; fits == e.fewest {
					break
				}
			}
		}
		s := candidate{at, w.pods(at)}
		if best.domain == place.Outside || s.pods < best.pods {
			best, fewest = s, int32(s.pods)
		}
	}
	visit(a.within)
	if best.domain == place.Outside {
		return nil
	}
	return []candidate{best}
}

// fits reports whether each ask fits in a domain alone, and how many pods of the first one fit.
func (a *askGroup) fits(d int32) (pods int64, ok bool) {
	for _, w := range a.wants {
		full, more, ok := w.need(w.layout.Depth(d))
		if !ok || w.pods(d) == 0 || !w.holdsOf(d).has(full, more) || !w.allowedAbove(d) {
			// measure skips domains without free places
			return 0, false
		}
	}
	return a.wants[0].pods(d), true
}

// groupsOf returns the groups of asks in order. Asks with the same Group are joined if any of them has a
// level.
func groupsOf(wants []*want) []*askGroup {
	var out []*askGroup
	if len(wants) == 1 {
		return append(out, groupOfOne(wants[0]))
	}
	groups, together := map[string]*askGroup{}, map[string]bool{}
	for _, w := range wants {
		together[w.Group] = together[w.Group] || w.Group != "" && w.Level != ""
	}
	for _, w := range wants {
		g := groups[w.Group]
		if g == nil || !together[w.Group] {
			g = &askGroup{}
			out = append(out, g)
			groups[w.Group] = g
		}
		g.wants = append(g.wants, w)
		if w.Level != "" && (!g.hasLevel || w.Mandatory && !g.mandatory) {
			g.hasLevel, g.mandatory, g.depth = true, w.Mandatory, w.depth
		}
	}
	return out
}

// groupOfOne returns the group of a single ask.
func groupOfOne(w *want) *askGroup {
	return &askGroup{wants: []*want{w}, depth: w.depth, hasLevel: w.Level != "", mandatory: w.Level != "" && w.Mandatory}
}

// narrow makes the group be within a domain of the depth.
func (a *askGroup) narrow(depth int32, mandatory bool) {
	if !mandatory {
		return
	}
	if !a.hasLevel || !a.mandatory {
		a.depth = depth
	}
	a.hasLevel, a.mandatory, a.depth = true, true, max(a.depth, depth)
}
