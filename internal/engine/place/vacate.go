package place

import "slices"

// vacate empties the ranks of a pod set whose places are invalid and returns their number. On each node it
// takes the last ranks of parts that have places there without a pod. With a rank of another part a
// running pod would lose its place in vain, since the missing pods cannot use it.
func (m *Map) vacate(h *holder, podSet int, ranks []string) int32 {
	invalid := m.invalidOf(h, podSet)
	if !invalid.any() {
		return 0
	}
	held := &h.podSets[podSet]
	parts := m.partsOf(h, podSet, int32(len(ranks)))
	unused := parts.unused(ranks)
	var out int32
	empty := func(takes func(at partOnHost) bool) {
		for rank, name := range slices.Backward(ranks) {
			s := held.at(name)
			if s == nil || invalid[s] == 0 || !takes(partOnHost{name, parts.of(int32(rank))}) {
				continue
			}
			invalid[s]--
			ranks[rank] = ""
			out++
		}
	}
	empty(func(at partOnHost) bool {
		unused[at]--
		return unused[at] >= 0
	})
	empty(func(partOnHost) bool { return true })
	return out
}

// podParts holds the parts of a pod set that pods belong to, and where these pods are.
type podParts struct {
	// begin holds the first rank of each part, sorted.
	begin []int32
	there map[partOnHost]int32
}

// partOnHost names a part, by its first rank, on a host.
type partOnHost struct {
	host  string
	begin int32
}

// partsOf returns the parts of the present pods of a pod set, which has `all` ranks.
func (m *Map) partsOf(h *holder, podSet int, all int32) podParts {
	out := podParts{there: map[partOnHost]int32{}}
	c := m.podsOf[h.key]
	if c == nil {
		return out
	}
	for _, p := range c.pods {
		if p.podSet != h.PodSets[podSet].Ask.PodSet {
			continue
		}
		from, to := p.part.ranks(all)
		out.begin = append(out.begin, from, to)
		if p.node.host != nil {
			out.there[partOnHost{p.node.host.name, from}]++
		}
	}
	slices.Sort(out.begin)
	out.begin = slices.Compact(out.begin)
	return out
}

// of returns the first rank of the part of a rank. Ranks between parts that have pods form parts as well.
func (p *podParts) of(rank int32) int32 {
	at, found := slices.BinarySearch(p.begin, rank)
	switch {
	case found:
		return rank
	case at == 0:
		return -1
	}
	return p.begin[at-1]
}

// unused counts the places at which no pod of their part is.
func (p *podParts) unused(ranks []string) map[partOnHost]int32 {
	out := map[partOnHost]int32{}
	for rank, host := range ranks {
		out[partOnHost{host, p.of(int32(rank))}]++
	}
	for at, pods := range p.there {
		out[at] -= pods
	}
	return out
}
