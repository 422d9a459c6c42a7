package place

// keepsBounds reports whether the places that were counted keep all bounds, whatever the layouts: labels that are no
// level of the topology are not limited while places are searched.
func (b *bounding) keepsBounds() bool {
	if b == nil {
		return true
	}
	for i := range b.rules {
		r := &b.rules[i]
		b.looked += len(r.own) + len(r.all)
		if !r.isKept() {
			return false
		}
	}
	return b.keepsLimits()
}

// isKept reports whether the places keep the rule.
func (r *rule) isKept() bool {
	switch r.Kind {
	case Apart:
		return r.keepsApart()
	case Together:
		return r.ownOutside == 0 && r.keepsTogether()
	}
	return r.ownOutside == 0 && r.keepsEven()
}

// keepsApart checks a rule Apart, for the pods of the pod set that keep their places too.
func (r *rule) keepsApart() bool {
	most := int64(0)
	if r.counts(r.owner.PodSet) {
		most = 1
	}
	for _, own := range []domainSums{r.own, r.ownKept} {
		for value := range own {
			if r.all[value] > most {
				return false
			}
		}
	}
	return true
}

// keepsTogether checks a rule Together: beside each pod is one of another pod set, or one that was there before; or else
// all pods that count are in one domain.
func (r *rule) keepsTogether() bool {
	self := r.counts(r.owner.PodSet)
	alone := false
	for value, pods := range r.own {
		others := r.all[value]
		if self {
			others -= pods
		}
		if others == 0 && r.kept[value] == 0 {
			alone = true
		}
	}
	return !alone || self && len(r.all) == 1
}

// keepsEven checks a rule Even.
func (r *rule) keepsEven() bool {
	fewest := int64(0)
	if r.MinDomains <= 1 {
		fewest = cap32
		for value := range r.eligible {
			fewest = min(fewest, r.all[value])
		}
	}
	for value := range r.own {
		if r.all[value]-fewest > int64(r.MaxSkew) {
			return false
		}
	}
	return true
}

// keepsLimits reports whether no node has more pods of the workload than its limit, unless they keep their places.
func (b *bounding) keepsLimits() bool {
	b.looked += len(b.limits)
	for _, limit := range b.limits {
		if on := b.placedOn[limit.Node]; on.found > 0 && on.kept+on.found > int64(limit.Count) {
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
func (s *search) isExact() bool {
	if s.bounding == nil {
		return true
	}
	if len(s.wants) > 1 || len(s.bounding.keptBy) > 0 || s.bounding.evens() > 1 {
		return false
	}
	w := s.wants[0]
	for i := range s.bounding.rules {
		r := &s.bounding.rules[i]
		_, ok := w.layout.depthOf(r.Key)
		if !ok || !w.layout.namesOnce(r.Key) || r.Kind == Even && (len(w.layers) > 1 || w.exclusiveDepth >= 0) {
			return false
		}
	}
	return true
}
