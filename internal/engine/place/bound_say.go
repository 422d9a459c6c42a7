package place

import "math"

// boundsOn returns the bounds of an ask if more of its pods would fit without them.
func (m *Map) boundsOn(f *search, w *want) []string {
	if len(w.Bounds) == 0 {
		return nil
	}
	free := []Ask{*w.Ask}
	free[0].Bounds = nil
	without, wrong := m.readWith(free, m.extras(free), f.on)
	if wrong != nil || len(without.wants) == 0 {
		return nil
	}
	defer m.close(without)
	m.count(without.wants[0], f.on)
	if m.mostIn(without, without.wants[0]) <= m.mostIn(f, w) {
		return nil
	}
	var out []string
	for i := range w.Bounds {
		out = append(out, w.Bounds[i].String())
	}
	return out
}

// mostIn returns how many pods of an ask fit in the best domain.
func (m *Map) mostIn(f *search, w *want) int32 {
	if d, ok := m.best(f, w); ok {
		return int32(min(w.holdable(d), math.MaxInt32))
	}
	return 0
}
