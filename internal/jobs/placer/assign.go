package placer

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// podSet holds the places of a pod set and how its pods state their ranks.
type podSet struct {
	places podspec.Ranking
	// count is how many pods have places.
	count int32
	// indexLabel is the pod label with a pod's rank in its group, "" if the pod's kind of job says which; groupLabel the
	// one with the group, "" if all pods are one group. Groups are of equal size, and their ranks follow one another.
	indexLabel, groupLabel string
	groups                 int32
	// slice is the size of the smallest parts that must each be in one domain, 0 if there are none.
	slice int32
}

// podSetOf returns a podSet as the topology request describes it or, for what the request does not say, as
// batch Jobs and JobSets do.
func podSetOf(places podspec.Ranking, request *kueue.PodSetTopologyRequest, pods []*corev1.Pod) podSet {
	s := podSet{places: places, count: places.Count(), groups: 1, slice: jobs.SmallestSlice(request)}
	if request != nil && request.PodIndexLabel != nil {
		s.indexLabel = *request.PodIndexLabel
	}
	if request != nil && request.SubGroupIndexLabel != nil && request.SubGroupCount != nil {
		s.groupLabel, s.groups = *request.SubGroupIndexLabel, *request.SubGroupCount
	} else if len(pods) > 0 {
		if n, ok := podspec.Number(pods[0].Labels[jobset.ReplicatedJobReplicas]); ok {
			s.groupLabel, s.groups = jobset.JobIndexKey, n
		}
	}
	if s.groups < 1 || s.count%s.groups != 0 {
		s.groupLabel, s.groups = "", 1 // such groups say nothing about ranks
	}
	return s
}

// placement assigns a pod to a place.
type placement struct {
	pod   *corev1.Pod
	place podspec.Place
}

// assign returns which gated pods of the set get which places now, and which pods are misplaced: where none of them has
// a place. A place is not assigned while a pod is there, even if that is terminating.
func (p podSet) assign(pods []*corev1.Pod, known nodes) (give []placement, misplaced []*corev1.Pod) {
	byGroup, succeeded := map[ranks][]*corev1.Pod{}, map[ranks][]*corev1.Pod{}
	for _, pod := range pods {
		switch g := p.groupOf(pod); {
		case !podspec.HasEnded(pod):
			byGroup[g] = append(byGroup[g], pod)
		case pod.Status.Phase == corev1.PodSucceeded:
			succeeded[g] = append(succeeded[g], pod)
		}
	}
	for _, g := range slices.SortedFunc(maps.Keys(byGroup),
		func(x, y ranks) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to)) }) {
		if !p.hasRanks(g) {
			continue // their places are unknown
		}
		group := p.groupPlaces(g, byGroup[g], known)
		group.divide(p.slice, g.from, byGroup[g])
		placed, lost := group.fill(byGroup[g], func() { group.rateDoubts(succeeded[g], known) })
		give, misplaced = append(give, placed...), append(misplaced, lost...)
	}
	return give, misplaced
}

// ranks is the range of ranks of a group in its pod set; to is exclusive.
type ranks struct{ from, to int32 }

// hasRanks reports whether the range is valid.
func (p podSet) hasRanks(r ranks) bool { return r.from < r.to && r.to <= p.count }

// groupOf returns the ranks of the pod's group, an empty range if the pod names no valid group.
func (p podSet) groupOf(pod *corev1.Pod) ranks {
	if from, to, known := podspec.RanksOf(pod); known {
		return ranks{from, to}
	}
	if p.groupLabel == "" {
		return ranks{0, p.count}
	}
	if g, ok := podspec.Number(pod.Labels[p.groupLabel]); ok && g < p.groups {
		size := p.count / p.groups
		return ranks{g * size, (g + 1) * size}
	}
	return ranks{}
}

// rankOf returns the rank of the pod in its group.
func (p podSet) rankOf(pod *corev1.Pod) (int32, bool) {
	if p.indexLabel == "" {
		return podspec.IndexOf(pod)
	}
	if rank, ok := podspec.Number(pod.Labels[p.indexLabel]); ok {
		return rank, true
	}
	return podspec.Number(pod.Annotations[p.indexLabel])
}

// groupPlaces holds the places of a group of pods, and the pods that use them.
type groupPlaces struct {
	// places are in the order of ranks; a domain can occur more than once. All have the same labels. ranking looks up
	// the place of a rank.
	places  podspec.Places
	ranking podspec.Ranking
	// rankOf returns the rank of a pod within the group, false if it has none.
	rankOf func(pod *corev1.Pod) (int32, bool)
	// domains is indexed by Place.Key; ordered has them in the order in which they first occur in places.
	domains map[string]*domain
	ordered []*domain
	// misplaced pods are at none of the places.
	misplaced []*corev1.Pod
	// sliceSize, first and parts are set by divide. parts has an entry for each slice and leads to the one
	// that represents its part; it is nil if all places are one part.
	sliceSize, first int32
	parts            []int32
}

// domain is a set of interchangeable places.
type domain struct {
	place podspec.Place
	size  int32
	// live pods of the domain stay; terminating counts its pods that are being deleted.
	live        []*corev1.Pod
	terminating int32
	// succeeded counts pods that have ended there and may not be replaced; closed is set if the node is gone or takes
	// no new pods. They are set by rateDoubts.
	succeeded int32
	closed    bool
	// slice is one of the slices that have a place in the domain, if inSlice is set.
	slice   int32
	inSlice bool
}

// free reports whether the domain has a place without a pod.
func (d *domain) free() bool { return int32(len(d.live))+d.terminating < d.size }

// groupPlaces sorts pods into the places at which they are.
func (p podSet) groupPlaces(of ranks, pods []*corev1.Pod, known nodes) *groupPlaces {
	places := p.places.Ranks(of.from, of.to)
	r := &groupPlaces{places: places, ranking: places.Ranking(), rankOf: p.rankOf, domains: map[string]*domain{}}
	for _, place := range places {
		key := place.Key()
		if r.domains[key] == nil {
			r.domains[key] = &domain{place: place}
			r.ordered = append(r.ordered, r.domains[key])
		}
		r.domains[key].size += place.Count
	}
	for _, pod := range pods {
		if gated(pod) {
			continue
		}
		where := nodeLabelsOf(pod, known)
		switch d := r.domainOf(where); {
		case d != nil && pod.DeletionTimestamp != nil:
			d.terminating++
		case d != nil:
			d.live = append(d.live, pod)
		case pod.DeletionTimestamp != nil:
			// It is misplaced, but already terminating.
		case where[corev1.LabelHostname] != "" || pod.Spec.NodeName != "" && r.allNodesExist(known):
			r.misplaced = append(r.misplaced, pod)
		}
	}
	return r
}

// allNodesExist reports whether the nodes of all places exist. Then a pod whose node does not exist, so that its
// hostname is unknown, is at none of the places.
func (g *groupPlaces) allNodesExist(known nodes) bool {
	return !slices.ContainsFunc(g.places, func(p podspec.Place) bool { return p.Node() == "" || !known.exists(p.Node()) })
}

// fill assigns free places to the gated pods: to each the place of its rank if possible, else a place that is left in
// its part. It calls rateDoubts once it must choose among places that are left.
func (g *groupPlaces) fill(pods []*corev1.Pod, rateDoubts func()) (give []placement, misplaced []*corev1.Pod) {
	misplaced = append(g.misplaced, g.excess()...)
	var anywhere []*corev1.Pod
	for _, pod := range g.gatedByRank(pods) {
		d := g.domainOfRank(pod)
		switch {
		case d == nil:
			anywhere = append(anywhere, pod)
		case d.free():
			give = append(give, d.take(pod))
		case int32(len(d.live)) < d.size:
			// A terminating pod still has the place, and will free it.
		default:
			anywhere = append(anywhere, pod)
		}
	}
	if len(anywhere) > 0 {
		rateDoubts()
	}
	waiting, vacancies := map[int32]int32{}, g.vacancies()
	for _, pod := range anywhere {
		part := g.partOf(pod)
		if d := vacancies[part].next(); d != nil {
			give = append(give, d.take(pod))
		} else {
			waiting[part]++
		}
	}
	return give, append(misplaced, g.intruders(waiting)...)
}

// take adds a pod to the domain.
func (d *domain) take(pod *corev1.Pod) placement {
	d.live = append(d.live, pod)
	return placement{pod: pod, place: d.place}
}

// excess returns the pods of domains that have more pods than places. Of each domain it chooses the pods that have
// progressed least, so that no running pod is deleted in favor of a waiting one; then pods whose rank belongs
// elsewhere; then the youngest.
func (g *groupPlaces) excess() []*corev1.Pod {
	var out []*corev1.Pod
	for _, key := range slices.Sorted(maps.Keys(g.domains)) {
		d := g.domains[key]
		over := len(d.live) - int(d.size)
		if over <= 0 {
			continue
		}
		slices.SortStableFunc(d.live, func(a, b *corev1.Pod) int {
			return cmp.Or(
				cmp.Compare(progress(a), progress(b)),
				-cmp.Compare(outOfRank(g.domainOfRank(a), d), outOfRank(g.domainOfRank(b), d)),
				-a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
				cmp.Compare(a.Name, b.Name))
		})
		out = append(out, d.live[:over]...)
		d.terminating += int32(over)
		d.live = d.live[over:]
	}
	return out
}

// progress ranks pods by how much would be lost with them.
func progress(pod *corev1.Pod) int {
	switch {
	case pod.Spec.NodeName == "":
		return 0
	case pod.Status.Phase != corev1.PodRunning:
		return 1
	}
	return 2
}

// outOfRank returns 1 if the pod's rank belongs to another domain.
func outOfRank(belongs, is *domain) int {
	if belongs != nil && belongs != is {
		return 1
	}
	return 0
}

// domainOfRank returns the domain of the pod's rank, nil if it has no valid rank.
func (g *groupPlaces) domainOfRank(pod *corev1.Pod) *domain {
	rank, ok := g.rankOf(pod)
	if !ok {
		return nil
	}
	at := g.ranking.Ranks(rank, rank+1)
	if len(at) == 0 {
		return nil // for example the index of a Job with more completions than parallelism
	}
	return g.domains[at[0].Key()]
}

// domainOf returns the domain whose labels match, nil if none does.
func (g *groupPlaces) domainOf(where map[string]string) *domain {
	return g.domains[g.places[0].KeyOf(where)]
}

// nodeLabelsOf returns the labels that tell where a pod is or must go. If the node does not exist, whose hostname may
// differ from its name, the hostname is the one of the pod's node selector, or the node's name if the pod's affinity
// contains that as a hostname.
func nodeLabelsOf(pod *corev1.Pod, known nodes) map[string]string {
	if pod.Spec.NodeName == "" {
		return pod.Spec.NodeSelector
	}
	where := map[string]string{}
	maps.Copy(where, pod.Spec.NodeSelector)
	if host := known.hostOf(pod.Spec.NodeName); host != "" {
		where[corev1.LabelHostname] = host
	} else if where[corev1.LabelHostname] == "" && podspec.NamesHost(pod.Spec, pod.Spec.NodeName) {
		where[corev1.LabelHostname] = pod.Spec.NodeName
	}
	return where
}

// gatedByRank returns the pods that wait for a place, sorted by rank, and by age if they have none.
func (g *groupPlaces) gatedByRank(pods []*corev1.Pod) []*corev1.Pod {
	ranks := map[*corev1.Pod]int32{}
	var out []*corev1.Pod
	for _, pod := range pods {
		if gated(pod) && pod.DeletionTimestamp == nil {
			ranks[pod], _ = g.rankOf(pod)
			out = append(out, pod)
		}
	}
	slices.SortStableFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	return out
}

// gated reports whether the pod waits for a place.
func gated(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: kueue.TopologyGate})
}
