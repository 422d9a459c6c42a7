package place

import "slices"

// RanksOf returns the node of each rank.
func RanksOf(places []NodeCount) (ranks []string) {
	for _, at := range places {
		for range at.Count {
			ranks = append(ranks, at.Node)
		}
	}
	return ranks
}

// Runs converts ranks to counts of consecutive equal nodes, skipping empty ranks.
func Runs(ranks []string) []NodeCount {
	var out []NodeCount
	for _, name := range ranks {
		if last := len(out) - 1; last >= 0 && out[last].Node == name {
			out[last].Count++
		} else if name != "" {
			out = append(out, NodeCount{name, 1})
		}
	}
	return out
}

// Shrink returns the places of a pod set after it loses as many pods as fewer says, all of which had invalid places.
// lost is the number of invalid places by node. The last ranks end. Ranks that end and have valid places hand these
// places to remaining ranks without a valid place.
func Shrink(places, lost []NodeCount, fewer int32) []NodeCount {
	invalid := map[string]int32{}
	for _, at := range lost {
		invalid[at.Node] += at.Count
	}
	ranks := RanksOf(places)
	left := len(ranks) - int(fewer)
	for rank, name := range slices.Backward(ranks) {
		if fewer > 0 && invalid[name] > 0 {
			invalid[name]--
			fewer--
			ranks[rank] = ""
		}
	}
	last := slices.DeleteFunc(slices.Clone(ranks[left:]), func(name string) bool { return name == "" })
	for rank := range ranks[:left] {
		if ranks[rank] == "" {
			ranks[rank], last = last[0], last[1:]
		}
	}
	return Runs(ranks[:left])
}

// vacate empties the ranks of a pod set whose places are invalid and returns their number. On each node it
// takes ranks whose own pods are missing there, the last ones first, in parts that have places there
// without a pod. With the rank of a pod that is there, or of another part, that pod would lose its place in
// vain: the missing pods cannot use it, or would find it taken.
func (hs *holdings) vacate(h *holder, podSet int, ranks []string) int32 {
	invalid := hs.invalidOf(h, podSet)
	if !invalid.any() {
		return 0
	}
	held := &h.podSets[podSet]
	parts := hs.partsOf(h, podSet, int32(len(ranks)))
	unused := parts.unused(ranks)
	var out int32
	empty := func(takes func(rank rankOnHost, at partOnHost) bool) {
		for rank, name := range slices.Backward(ranks) {
			at := partOnHost{name, parts.of(int32(rank))}
			hp := held.at(name)
			if hp == nil || invalid[hp] == 0 || !takes(rankOnHost{name, int32(rank)}, at) {
				continue
			}
			invalid[hp]--
			unused[at]--
			ranks[rank] = ""
			out++
		}
	}
	empty(func(rank rankOnHost, at partOnHost) bool { return unused[at] > 0 && !parts.ranks[rank] })
	empty(func(_ rankOnHost, at partOnHost) bool { return unused[at] > 0 })
	empty(func(rankOnHost, partOnHost) bool { return true })
	return out
}

// podParts holds the parts of a pod set that pods belong to, and where these pods are.
type podParts struct {
	// begin holds the first rank of each part, sorted.
	begin []int32
	there map[partOnHost]int32
	// ranks holds the ranks whose pods are on the host.
	ranks map[rankOnHost]bool
}

// partOnHost names a part, by its first rank, on a host.
type partOnHost struct {
	host  string
	begin int32
}

// rankOnHost names a rank on a host.
type rankOnHost struct {
	host string
	rank int32
}

// partsOf returns the parts of the present pods of a pod set, which has `all` ranks. The part of a pod with
// a rank is its slice, since its replacement takes no place of another one.
func (hs *holdings) partsOf(h *holder, podSet int, all int32) podParts {
	out := podParts{there: map[partOnHost]int32{}, ranks: map[rankOnHost]bool{}}
	c := hs.pods.ofWorkload[h.key]
	if c == nil {
		return out
	}
	ask := &h.PodSets[podSet].Ask
	for _, p := range c.pods {
		if p.podSet != ask.PodSet {
			continue
		}
		from, to := p.part.ranks(all)
		ranked, rank := p.rank >= 0 && p.rank < to-from, int32(0)
		if ranked {
			rank = from + p.rank
			from, to = ask.sliceOf(rank, from, to)
		}
		out.begin = append(out.begin, from, to)
		if p.node.host == nil {
			continue
		}
		out.there[partOnHost{p.node.host.name, from}]++
		if ranked {
			out.ranks[rankOnHost{p.node.host.name, rank}] = true
		}
	}
	slices.Sort(out.begin)
	out.begin = slices.Compact(out.begin)
	return out
}

// sliceOf returns the ranks between from and to that are in the same slice as the rank, of the finest layer.
func (a *Ask) sliceOf(rank, from, to int32) (first, end int32) {
	if len(a.Slices) == 0 {
		return from, to
	}
	size := max(1, a.Slices[len(a.Slices)-1].Size)
	first = rank / size * size
	return max(from, first), int32(min(int64(to), int64(first)+int64(size)))
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
