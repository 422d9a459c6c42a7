package engine

import "github.com/musterhq/muster/internal/engine/place"

func (ev NodeSet) apply(e *Engine)     { e.places.SetNode(ev.Node) }
func (ev NodeDeleted) apply(e *Engine) { e.places.DeleteNode(ev.Name) }
func (ev PodBound) apply(e *Engine)    { e.places.SetPod(ev.Pod) }
func (ev PodGone) apply(e *Engine)     { e.places.DeletePod(ev.Key) }

func (ev TopologySet) apply(e *Engine) {
	e.places.SetTopology(ev.Topology)
	e.changeTopology(ev.Topology.Name)
}

func (ev TopologyDeleted) apply(e *Engine) {
	e.places.DeleteTopology(ev.Name)
	e.changeTopology(ev.Name)
}

// changeTopology has the queues that offer a flavor of the topology look at everyone
// again.
func (e *Engine) changeTopology(name string) {
	for _, f := range e.flavors {
		if f.Topology == name {
			e.changeFlavor(f.Name)
		}
	}
}

// setFlavor tells the map of places of a flavor.
func (e *Engine) setFlavor(f Flavor) {
	e.places.SetFlavor(place.Flavor{Name: f.Name, Topology: f.Topology, NodeLabels: f.NodeLabels, Tolerations: f.Tolerations})
}

func (ev PodUnschedulable) apply(e *Engine) {}
