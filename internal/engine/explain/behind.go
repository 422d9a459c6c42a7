package explain

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// findHead determines the head that the workload waits behind in a queue by resource, even if no pass has done so
// yet.
func (ex *explainer) findHead() {
	w, q := ex.w, ex.w.ClusterQueue
	if q.Strategy != model.ByResource || w.Class == nil {
		return
	}
	earlier := make([]*state.Class, 0, len(q.Classes))
	for _, c := range q.Classes {
		if c != w.Class && c.Turn().Before(w.Turn(), q) {
			earlier = append(earlier, c)
		}
	}
	slices.SortFunc(earlier, func(a, b *state.Class) int {
		if a.Before(&b.Class) {
			return -1
		}
		return 1
	})
	var heads []*state.Class
	lacks := map[*state.Class][]quota.FlavorResource{}
	waitsBehind := func(c *state.Class) func(*state.Class) bool {
		return func(head *state.Class) bool {
			return slices.ContainsFunc(lacks[head], ex.FormOf(c).Asks)
		}
	}
	for _, c := range earlier {
		switch {
		case c.IsHead():
			heads, lacks[c] = append(heads, c), c.Lacks()
		case c.IsBlocked() || slices.ContainsFunc(heads, waitsBehind(c)):
		default:
			if found := ex.EvaluateInTurn(c); found.Verdict == state.Hopeless && len(found.Lacks) > 0 {
				heads, lacks[c] = append(heads, c), found.Lacks
			}
		}
	}
	if n := slices.IndexFunc(heads, waitsBehind(w.Class)); n >= 0 {
		ex.out.Behind = new(reason.Name(heads[n].Head().Key))
		for _, fr := range lacks[heads[n]] {
			ex.out.BehindLacks = append(ex.out.BehindLacks, fr.Resource)
		}
		slices.Sort(ex.out.BehindLacks)
		ex.out.BehindLacks = slices.Compact(ex.out.BehindLacks)
	}
}
