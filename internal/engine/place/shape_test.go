package place

import (
	"fmt"
	"testing"
)

// TestCachesAreBounded: a thousand different asks leave only a bounded number of entries.
func TestCachesAreBounded(t *testing.T) {
	m := New()
	m.SetTopology(Topology{Name: "t", Levels: []string{"rack", Hostname}})
	m.SetFlavor(Flavor{Name: "f", Topology: "t"})
	for i := range 1000 {
		label := fmt.Sprint("label-", i)
		m.SetNode(Node{Name: "a1", Labels: map[string]string{"rack": "a", Hostname: "a1", label: "x"}})
		m.Layouts.Bound()
		ask := &Ask{Flavor: "f", ExclusiveKey: label, NodeSelector: map[string]string{label: "x"}}
		m.Shapes.Of(ask, ask.FilterKey(), m.Layouts.Of("f", label), Now)
	}
	if len(m.filters.byKey) > mostFilters || len(m.Layouts.byKey) > mostLayouts+2 {
		t.Errorf("%d filters and %d layouts are cached, beyond their bounds", len(m.filters.byKey), len(m.Layouts.byKey))
	}
}
