package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// findHead determines the head that the workload waits behind in a queue by resource, even if no pass has done so
// yet.
func (ex *explainer) findHead() {
	w, q := ex.w, ex.w.queue
	if q.Strategy != ByResource || w.class == nil {
		return
	}
	earlier := make([]*class, 0, len(q.classes))
	for _, c := range q.classes {
		if c != w.class && c.turn().before(w.turn(), q) {
			earlier = append(earlier, c)
		}
	}
	slices.SortFunc(earlier, func(a, b *class) int {
		if a.Before(&b.Class) {
			return -1
		}
		return 1
	})
	var heads []*class
	lacks := map[*class][]quota.FlavorResource{}
	waitsBehind := func(c *class) func(*class) bool {
		return func(head *class) bool { return slices.ContainsFunc(lacks[head], ex.engine.evaluator.formOf(c).Asks) }
	}
	for _, c := range earlier {
		switch {
		case c.IsHead():
			heads, lacks[c] = append(heads, c), c.Lacks()
		case c.IsBlocked() || slices.ContainsFunc(heads, waitsBehind(c)):
		default:
			if found := ex.engine.evaluator.evaluateInTurn(c); found.verdict == hopeless && len(found.lacks) > 0 {
				heads, lacks[c] = append(heads, c), found.lacks
			}
		}
	}
	if n := slices.IndexFunc(heads, waitsBehind(w.class)); n >= 0 {
		ex.out.Behind = new(reason.NameOf(heads[n].Head().Key))
		for _, fr := range lacks[heads[n]] {
			ex.out.BehindLacks = append(ex.out.BehindLacks, fr.Resource)
		}
		slices.Sort(ex.out.BehindLacks)
		ex.out.BehindLacks = slices.Compact(ex.out.BehindLacks)
	}
}
