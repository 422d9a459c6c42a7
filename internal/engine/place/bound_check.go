package place

// keepsBounds reports whether the places keep all bounds, whatever the layouts: labels that are no level of the topology
// are not limited while places are searched.
func (m *Map) keepsBounds(f *search, placed []placement) bool {
	if f.bounding == nil {
		return true
	}
	for i := range f.bounding.rules {
		if !m.keeps(f, &f.bounding.rules[i], placed) {
			return false
		}
	}
	return m.keepsLimits(f, placed)
}

// keeps reports whether the places keep one rule.
func (m *Map) keeps(f *search, r *rule, placed []placement) bool {
	kept, all, own := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, a := range f.bounding.keptBy {
		if r.counts(a.PodSet) {
			m.addKept(kept, r.Key, a.Nodes)
			m.addKept(all, r.Key, a.Nodes)
		}
	}
	for _, p := range placed {
		for _, at := range p.nodes {
			value, has := m.slots[at.slot].Labels[r.Key]
			if mine := p.want.PodSet == r.owner.PodSet; mine && has {
				own[value] += int64(at.pods)
			} else if mine && at.pods > 0 && r.Kind != Apart {
				return false
			}
			if has && r.counts(p.want.PodSet) {
				all[value] += int64(at.pods)
			}
		}
	}
	switch r.Kind {
	case Apart:
		return r.keepsApart(m, f, own, all)
	case Together:
		return r.keepsTogether(kept, own, all)
	}
	return r.keepsEven(own, all)
}

// keepsApart checks a rule Apart, for the pods of the pod set that keep their places too.
func (r *rule) keepsApart(m *Map, f *search, own, all map[string]int64) bool {
	for _, a := range f.bounding.keptBy {
		if a.PodSet == r.owner.PodSet {
			m.addKept(own, r.Key, a.Nodes)
		}
	}
	most := int64(0)
	if r.counts(r.owner.PodSet) {
		most = 1
	}
	for value, pods := range own {
		if pods > 0 && all[value] > most {
			return false
		}
	}
	return true
}

// keepsTogether checks a rule Together: beside each pod is one of another pod set, or one that was there before; or else
// all pods that count are in one domain.
func (r *rule) keepsTogether(kept, own, all map[string]int64) bool {
	self := r.counts(r.owner.PodSet)
	alone, used := false, 0
	for value, pods := range all {
		if pods > 0 || own[value] > 0 {
			used++
		}
	}
	for value, pods := range own {
		others := all[value]
		if self {
			others -= pods
		}
		if pods > 0 && others == 0 && kept[value] == 0 {
			alone = true
		}
	}
	return !alone || self && used == 1
}

// keepsEven checks a rule Even.
func (r *rule) keepsEven(own, all map[string]int64) bool {
	fewest := int64(0)
	if r.MinDomains <= 1 {
		fewest = cap32
		for value := range r.eligible {
			fewest = min(fewest, all[value])
		}
	}
	for value, pods := range own {
		if pods > 0 && all[value]-fewest > int64(r.MaxSkew) {
			return false
		}
	}
	return true
}

// keepsLimits reports whether no node has more pods of the workload than its limit, unless they keep their places.
func (m *Map) keepsLimits(f *search, placed []placement) bool {
	for _, limit := range f.bounding.limits {
		sum, new := map[string]int64{}, int64(0)
		for _, a := range f.bounding.keptBy {
			m.addKept(sum, Hostname, a.Nodes)
		}
		for _, p := range placed {
			for _, at := range p.nodes {
				if m.slots[at.slot].host.name == limit.Node {
					new += int64(at.pods)
				}
			}
		}
		if new > 0 && sum[limit.Node]+new > int64(limit.Count) {
			return false
		}
	}
	return true
}

// namesOnce reports whether each value of a level stands for one domain only.
func (l *layout) namesOnce(level string) bool {
	if level == Hostname {
		return true
	}
	depth, _ := l.depthOf(level)
	seen := map[string]bool{}
	for i := range l.domains {
		if d := &l.domains[i]; d.depth == depth && (i == 0 || d.parent != outside) {
			if seen[d.value] {
				return false
			}
			seen[d.value] = true
		}
	}
	return level != l.extra || !seen[""]
}

// isExact reports whether the search by domains finds places with the bounds whenever there are any, so that it is in vain
// to try all combinations.
func (f *search) isExact() bool {
	if f.bounding == nil {
		return true
	}
	if len(f.wants) > 1 || len(f.bounding.keptBy) > 0 || f.bounding.evens() > 1 {
		return false
	}
	w := f.wants[0]
	for i := range f.bounding.rules {
		r := &f.bounding.rules[i]
		_, ok := w.layout.depthOf(r.Key)
		if !ok || !w.layout.namesOnce(r.Key) || r.Kind == Even && (len(w.layers) > 1 || w.exclusiveDepth >= 0) {
			return false
		}
	}
	return true
}
