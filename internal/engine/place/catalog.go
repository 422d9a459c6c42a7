package place

// catalog holds the topologies and flavors by name.
type catalog struct {
	topologies map[string]Topology
	flavors    map[string]Flavor
	// version changes with what follows from them and from the resources of nodes.
	version uint64
}

func newCatalog() *catalog {
	return &catalog{topologies: map[string]Topology{}, flavors: map[string]Flavor{}}
}

// renew discards what follows from the definitions.
func (c *catalog) renew() { c.version++ }

// levels returns the levels of the topology of a flavor.
func (c *catalog) levels(flavor string) []string {
	return c.topologies[c.flavors[flavor].Topology].Levels
}

// isPlaced reports whether pods of the flavor are placed on nodes: it names a topology that exists.
func (c *catalog) isPlaced(flavor string) bool {
	f, ok := c.flavors[flavor]
	if !ok || f.Topology == "" {
		return false
	}
	_, ok = c.topologies[f.Topology]
	return ok
}

// within reports whether others contains all of the labels.
func within(labels, others map[string]string) bool {
	for key, value := range labels {
		if have, ok := others[key]; !ok || have != value {
			return false
		}
	}
	return true
}
