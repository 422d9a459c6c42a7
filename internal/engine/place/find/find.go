package find

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// Find searches places for all asks together, all or nothing, and changes nothing. It returns the
// assignments in the order of the asks, or why there are none. IsPlaced must hold for the flavors of all
// asks. If the asks are few or alike the search is exact; for large asks that differ much it may miss
// places that exist.
func (f *Finder) Find(asks []place.Ask, on place.Ledger) ([]place.Assignment, *Shortfall) {
	s, wrong := f.open(asks, on)
	if wrong != nil {
		return nil, wrong
	}
	defer s.close()
	if s.run() {
		return s.assignments(), nil
	}
	return nil, explainer{f, s}.shortfall()
}

// TryFind searches places as Find does, and does not say why there are none: finding the reason often takes longer than
// the search itself.
func (f *Finder) TryFind(asks []place.Ask, on place.Ledger) (found []place.Assignment, ok bool) {
	s, wrong := f.open(asks, on)
	if wrong != nil {
		return nil, false
	}
	defer s.close()
	if !s.run() {
		return nil, false
	}
	return s.assignments(), true
}

// Fits reports whether Find finds places.
func (f *Finder) Fits(asks []place.Ask, on place.Ledger) bool {
	s, wrong := f.open(asks, on)
	if wrong != nil {
		return false
	}
	defer s.close()
	return s.run()
}

// EverFits reports whether the asks could be placed on the present nodes if all work had ended and no node
// were cordoned. Nodes that they avoid count: kube-scheduler may accept them later.
func (f *Finder) EverFits(asks []place.Ask) bool {
	asks = slices.Clone(asks)
	for i := range asks {
		asks[i].Avoid, asks[i].Limits = nil, nil
	}
	return f.Fits(asks, place.Empty)
}

// TakeInvalid returns, sorted, the workloads with invalid places, which need other ones. Only workloads for which
// something changed since the last call are considered. Nominated places may be invalid as well: they are not repaired,
// but headroom must be found again. Places of leaving workloads never are.
func (f *Finder) TakeInvalid() []order.Key {
	var out []order.Key
	for key := range f.places.TakeToCheck() {
		if f.hasInvalid(key) {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, order.CompareKeys)
	return out
}

// hasInvalid reports whether any place of the workload must be replaced.
func (f *Finder) hasInvalid(workload order.Key) bool {
	h := f.places.Holding(workload)
	return h != nil && !h.Leaving && (f.places.HasInvalid(workload) || f.scattered(workload, h))
}
