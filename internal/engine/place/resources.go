package place

import "slices"

// resources gives a dense index to each resource that a node has or had. Users may name any resource in their pods, so
// these names get none: a pod that asks for one fits nowhere, and what a pod on a node asks for of one is kept with the
// pod, until a node has the resource.
type resources struct {
	index map[string]int32
	names []string
}

// unknown is the index of all resources that no node has. Nothing of these resources is free.
const unknown int32 = 1

func newResources() *resources {
	return &resources{index: map[string]int32{Pods: 0}, names: []string{Pods, ""}}
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
func (r *resources) vector(perPod map[string]int64) vector {
	v := make(vector, 1, len(perPod)+1)
	v[0] = amount{0, 1}
	hasUnknown := false
	for name, value := range r.positive(perPod) {
		i, known := r.index[name]
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

// charges converts the amounts that a pod uses on a node. It returns the amounts of resources that no node has
// separately.
func (r *resources) charges(perPod map[string]int64) (v vector, others map[string]int64) {
	v = make(vector, 1, min(len(perPod), len(r.names))+1)
	v[0] = amount{0, 1}
	for name, value := range r.positive(perPod) {
		if i, known := r.index[name]; known {
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
func (r *resources) positive(perPod map[string]int64) func(yield func(string, int64) bool) {
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
func (r *resources) unknownIn(perPod map[string]int64) string {
	for name := range r.positive(perPod) {
		if _, known := r.index[name]; !known {
			return name
		}
	}
	return ""
}

// nameOf returns the name of a resource that limits pods with these requests.
func (r *resources) nameOf(resource int32, perPod map[string]int64) string {
	if resource == unknown {
		return r.unknownIn(perPod)
	}
	return r.names[resource]
}

func (v vector) has(resource int32) bool {
	return slices.ContainsFunc(v, func(a amount) bool { return a.resource == resource })
}
