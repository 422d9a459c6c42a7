package place

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// resources gives a dense index to each resource that a node has or had. Users may name any resource in their pods, so
// these names get none: a pod that asks for one fits nowhere, and what a pod on a node asks for of one is kept with the
// pod, until a node has the resource.
type resources struct {
	index map[string]int32
	names []string
}

// unknown is the index of all resources that no node has. Nothing of it is free.
const unknown int32 = 1

func newResources() resources {
	return resources{index: map[string]int32{Pods: 0}, names: []string{Pods, ""}}
}

// of returns the index of a resource that a node has.
func (r *resources) of(name string) (i int32, isNew bool) {
	i, known := r.index[name]
	if !known {
		i = int32(len(r.names))
		r.index[name] = i
		r.names = append(r.names, name)
	}
	return i, !known
}

// amount is an amount of one resource.
type amount struct {
	resource int32
	value    int64
}

// vector holds what one pod uses: first one of Pods, then the other resources sorted by name, without
// zeros.
type vector []amount

// vector converts the amounts that a pod asks for. Negative ones are left out: they must not enlarge the capacity of a
// node. All resources that no node has are one amount, at the place of the first.
func (m *Map) vector(perPod map[string]int64) vector {
	v := make(vector, 1, len(perPod)+1)
	v[0] = amount{0, 1}
	hasUnknown := false
	for name, value := range m.positive(perPod) {
		i, known := m.resources.index[name]
		if !known && hasUnknown {
			continue
		}
		if !known {
			i, value, hasUnknown = unknown, 1, true
		}
		v = append(v, amount{i, value})
	}
	return v
}

// charges converts the amounts that a pod uses on a node. It returns those of resources that no node has beside.
func (m *Map) charges(perPod map[string]int64) (v vector, others map[string]int64) {
	v = make(vector, 1, min(len(perPod), len(m.resources.names))+1)
	v[0] = amount{0, 1}
	for name, value := range m.positive(perPod) {
		if i, known := m.resources.index[name]; known {
			v = append(v, amount{i, value})
		} else {
			if others == nil {
				others = map[string]int64{}
			}
			others[name] = value
		}
	}
	return v, others
}

// positive yields the amounts above zero of all resources but Pods, sorted by name.
func (m *Map) positive(perPod map[string]int64) func(yield func(string, int64) bool) {
	return func(yield func(string, int64) bool) {
		var names [few]string
		for _, name := range namesOf(perPod, names[:0]) {
			if value := perPod[name]; value > 0 && name != Pods && !yield(name, value) {
				return
			}
		}
	}
}

// unknownIn returns the first resource of the amounts that no node has.
func (m *Map) unknownIn(perPod map[string]int64) string {
	for name := range m.positive(perPod) {
		if _, known := m.resources.index[name]; !known {
			return name
		}
	}
	return ""
}

// resourceName returns the name of a resource that limits pods with these requests.
func (m *Map) resourceName(resource int32, perPod map[string]int64) string {
	if resource == unknown {
		return m.unknownIn(perPod)
	}
	return m.resources.names[resource]
}

// learn charges what pods and workloads use of resources that a node has for the first time. This is rare, so all pods
// are looked at.
func (m *Map) learn(names []string) {
	if len(names) == 0 {
		return
	}
	clear(m.tallies.byKey)
	m.changes++
	uses := func(perPod map[string]int64) bool {
		return slices.ContainsFunc(names, func(name string) bool { return perPod[name] > 0 })
	}
	for _, p := range m.pods {
		if uses(p.others) {
			m.chargePod(p, -1)
			all := maps.Clone(p.others)
			for _, a := range p.takes[1:] {
				all[m.resources.names[a.resource]] = a.value
			}
			p.takes, p.others = m.charges(all)
			m.chargePod(p, 1)
			m.settle(p.node)
		}
	}
	var holders []order.Key
	for key, h := range m.holders {
		if slices.ContainsFunc(h.PodSets, func(set HeldPodSet) bool { return uses(set.Ask.PerPod) }) {
			holders = append(holders, key)
		}
	}
	for _, key := range holders {
		m.Hold(key, &m.holders[key].Holding)
	}
}
