package find

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// explainer explains why a search that is still open has found nothing.
type explainer struct {
	finder *Finder
	*search
}

// shortfall explains why a search that is still open has found nothing: the first ask that has no places
// even alone or, if there is Accepted, that the asks do not fit together.
func (e explainer) shortfall() *Shortfall {
	var first *want
	for _, w := range e.wants {
		e.takeBack(0)
		e.count(w)
		if !e.fitsAlone(w) && (first == nil || w.index < first.index) {
			first = w
		}
	}
	if first != nil {
		return e.shortfallOf(first)
	}
	first = slices.MinFunc(e.wants, func(a, b *want) int { return cmp.Compare(a.index, b.index) })
	s := e.shortfallOf(first)
	s.Together = len(e.wants) > 1
	return s
}

// shortfallOf returns the shortfall of one ask.
func (e explainer) shortfallOf(w *want) *Shortfall {
	t := w.tally
	s := &Shortfall{PodSet: w.PodSet, Flavor: w.Flavor, Topology: e.places.Flavor(w.Flavor).Topology,
		Count: w.Count, Nodes: t.nodes}
	for why := place.Accepted + 1; int(why) < len(t.lost); why++ {
		if t.lost[why] > 0 {
			s.Excluded = append(s.Excluded, Excluded{e.places.Shapes.RefusalText(why, w.Ask), t.lost[why]})
		}
	}
	if s.Nodes == 0 {
		for key, value := range e.places.Flavor(w.Flavor).NodeLabels {
			s.FlavorLabels = append(s.FlavorLabels, key+"="+value)
		}
		slices.Sort(s.FlavorLabels)
	}
	slices.SortFunc(s.Excluded, func(a, b Excluded) int { return cmp.Compare(a.Filter, b.Filter) })
	if best, ok := e.best(w); ok {
		s.Fits = int32(min(w.holdable(best), int64(w.Count), math.MaxInt32))
	}
	if e.bounding != nil && len(e.wants) == 1 { // there is headroom, but no way to keep the bounds
		s.Fits = min(s.Fits, s.Count-1)
	}
	s.Bounds = e.boundsOn(w)
	for resource := range e.limitingResources(w) {
		s.Resources = append(s.Resources, e.places.Shapes.ResourceName(resource, w.Ask))
	}
	slices.Sort(s.Resources)
	return s
}

// best returns the domain that could hold most pods of an ask, of the domains that may hold all of it.
func (e explainer) best(w *want) (int32, bool) {
	g := e.groupOf(w)
	w.measure(g.within)
	best, most := place.Outside, int64(0)
	w.layout.Walk(g.within, g.widest(), func(d int32) {
		if pods := w.holdable(d); pods > most {
			best, most = d, pods
		}
	})
	return best, most > 0
}

// limitingResources returns the resources of which more alone would let more pods fit on some node.
func (e explainer) limitingResources(w *want) map[int32]bool {
	out := map[int32]bool{}
	last := int32(-1)
	for slot, why := range w.tally.why {
		if bound, limits := e.places.Shapes.Limit(&w.tally.shape, int32(slot), why); limits && bound != last {
			out[bound] = true
			last = bound
		}
	}
	return out
}

// boundsOn returns the bounds of an ask if more of its pods would fit without them.
func (e explainer) boundsOn(w *want) []string {
	if len(w.Bounds) == 0 {
		return nil
	}
	free := []place.Ask{*w.Ask}
	free[0].Bounds = nil
	without, wrong := e.finder.openWith(free, e.finder.extras(free), e.on)
	if wrong != nil || len(without.wants) == 0 {
		return nil
	}
	defer without.close()
	e.count(without.wants[0])
	if (explainer{e.finder, without}).mostIn(without.wants[0]) <= e.mostIn(w) {
		return nil
	}
	var out []string
	for i := range w.Bounds {
		out = append(out, w.Bounds[i].String())
	}
	return out
}

// mostIn returns how many pods of an ask fit in the best domain.
func (e explainer) mostIn(w *want) int32 {
	if d, ok := e.best(w); ok {
		return int32(min(w.holdable(d), math.MaxInt32))
	}
	return 0
}

// scarce returns the resource that most nodes of a domain run out of first. It returns "" if more of any
// resource would not let more pods fit there, because parts are exclusive or each pod uses a host port.
func (e explainer) scarce(w *want, d int32) string {
	counts := map[int32]int{}
	most := int32(-1)
	name := func(resource int32) string { return e.places.Shapes.ResourceName(resource, w.Ask) }
	w.layout.Walk(d, w.layout.Bottom(), func(d int32) {
		slot, _ := place.SlotOf(d)
		bound, limits := e.places.Shapes.Limit(&w.tally.shape, slot, w.tally.why[slot])
		if !limits {
			return
		}
		counts[bound]++
		if most < 0 || counts[bound] > counts[most] || counts[bound] == counts[most] && name(bound) < name(most) {
			most = bound
		}
	})
	if most < 0 || !e.limitedByResources(w, d) {
		return ""
	}
	return name(most)
}

// limitedByResources reports whether more of the pods would fit in a domain if its nodes had more of every
// resource.
func (e explainer) limitedByResources(w *want, d int32) bool {
	if w.podsOnly() && len(w.HostPorts) == 0 {
		return true
	}
	ask := *w.Ask
	ask.PerPod = nil
	free, wrong := e.finder.resolve(&ask, w.index, w.layout.Extra())
	if wrong != "" {
		return false
	}
	free.bounding = w.bounding
	e.count(free)
	free.measure(d)
	return free.holdable(d) > w.holdable(d)
}

// diagnose explains the situation of one ask alone.
func (e explainer) diagnose(w *want) AskDiagnosis {
	out := AskDiagnosis{Shortfall: *e.shortfallOf(w)}
	d, ok := e.best(w)
	if !ok {
		return out
	}
	fits := int32(min(w.holdable(d), math.MaxInt32))
	out.Best = &Domain{Level: w.layout.LevelAt(w.layout.Depth(d)), Values: w.layout.Path(d), Fits: fits,
		Lacks: w.Count - fits, Resource: e.scarce(w, d)}
	if slot, ok := place.SlotOf(d); ok {
		out.Best.Values = append(out.Best.Values, e.places.Nodes.HostAt(slot))
	}
	return out
}
