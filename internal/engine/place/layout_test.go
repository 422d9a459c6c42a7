package place

import "testing"

// TestLayoutKeysDoNotCollide: no topology gets the layout of another, whatever label a tenant names for
// exclusive placement.
func TestLayoutKeysDoNotCollide(t *testing.T) {
	m := New()
	m.SetTopology(Topology{Name: "racks", Levels: []string{"rack"}})
	m.SetTopology(Topology{Name: "hosts", Levels: []string{"rack", Hostname}})
	for _, topology := range []string{"racks", "hosts"} {
		m.SetFlavor(Flavor{Name: topology, Topology: topology})
	}
	for _, exclusive := range []string{"\x00" + Hostname, "zone\x00" + Hostname} {
		m.Layouts.Of("racks", exclusive)
	}
	for _, exclusive := range []string{"", "zone"} {
		if l := m.Layouts.Of("hosts", exclusive); l.extra != exclusive {
			t.Errorf("layout exclusive by %q: extra label %q, levels %q, want its own", exclusive, l.extra, l.levels)
		}
	}
}
