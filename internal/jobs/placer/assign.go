package placer

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// podSet is a pod set with places.
type podSet struct {
	places podspec.Places
	// indexLabel is the pod label that holds a pod's rank within its group; groupLabel
	// holds the group, "" where all pods are one. The groups are of equal size, and their
	// ranks follow each other.
	indexLabel, groupLabel string
	groups                 int32
}

// podSetOf reads how pods of a pod set know their ranks. Where the Workload does not say,
// it is as batch Jobs and JobSets have it.
func podSetOf(places podspec.Places, request *kueue.PodSetTopologyRequest, pods []*corev1.Pod) podSet {
	s := podSet{places: places, indexLabel: batchv1.JobCompletionIndexAnnotation, groups: 1}
	if request != nil && request.PodIndexLabel != nil {
		s.indexLabel = *request.PodIndexLabel
	}
	if request != nil && request.SubGroupIndexLabel != nil && request.SubGroupCount != nil {
		s.groupLabel, s.groups = *request.SubGroupIndexLabel, *request.SubGroupCount
	} else if len(pods) > 0 {
		if n, ok := number(pods[0].Labels[jobset.ReplicatedJobReplicas]); ok {
			s.groupLabel, s.groups = jobset.JobIndexKey, n
		}
	}
	if s.groups < 1 || places.Count()%s.groups != 0 {
		s.groupLabel, s.groups = "", 1 // whoever wrote this, it says nothing of ranks
	}
	return s
}

// placement gives a pod its place.
type placement struct {
	pod   *corev1.Pod
	place podspec.Place
}

// seats says which gated pods of the set get which places now, and which pods are where
// none of them has a place. No place is given while a pod lives there, be it on its way out.
func (s podSet) assign(pods []*corev1.Pod, known nodes) (give []placement, misplaced []*corev1.Pod) {
	byGroup := map[ranks][]*corev1.Pod{}
	for _, pod := range pods {
		if !done(pod) {
			g := s.groupOf(pod)
			byGroup[g] = append(byGroup[g], pod)
		}
	}
	for _, g := range slices.SortedFunc(maps.Keys(byGroup), func(x, y ranks) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to)) }) {
		if !s.hasRanks(g) {
			continue // nobody knows where they belong
		}
		placed, lost := newGroupPlaces(s.places.Ranks(g.from, g.to), byGroup[g], known).fill(byGroup[g], s.rankOf)
		give, misplaced = append(give, placed...), append(misplaced, lost...)
	}
	return give, misplaced
}

// ranks are those of a group in its pod set: from, and up to but not including to.
type ranks struct{ from, to int32 }

// has reports whether there are those ranks.
func (s podSet) hasRanks(r ranks) bool { return r.from < r.to && r.to <= s.places.Count() }

// groupOf are the ranks of the pod's group, which has none where it says no group that there
// is.
func (s podSet) groupOf(pod *corev1.Pod) ranks {
	if from, to, said := podspec.RanksOf(pod); said {
		return ranks{from, to}
	}
	if s.groupLabel == "" {
		return ranks{0, s.places.Count()}
	}
	if g, ok := number(pod.Labels[s.groupLabel]); ok && g < s.groups {
		size := s.places.Count() / s.groups
		return ranks{g * size, (g + 1) * size}
	}
	return ranks{}
}

// rankOf is the rank of the pod in its group.
func (s podSet) rankOf(pod *corev1.Pod) (int32, bool) {
	if rank, ok := number(pod.Labels[s.indexLabel]); ok {
		return rank, true
	}
	return number(pod.Annotations[s.indexLabel])
}

func number(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && n >= 0
}

// row are the places of a group of pods with who has them.
type groupPlaces struct {
	// order are the places in the order of ranks; a domain can be there twice.
	places podspec.Places
	// domains by their key.
	domains map[string]*domain
	// lost are pods at none of the places.
	misplaced []*corev1.Pod
}

// domain is where places are interchangeable.
type domain struct {
	place podspec.Place
	size  int32
	// here are live pods that stay, leaving those on their way out.
	live        []*corev1.Pod
	terminating int32
}

func (d *domain) free() bool { return int32(len(d.live))+d.terminating < d.size }

func newGroupPlaces(places podspec.Places, pods []*corev1.Pod, known nodes) *groupPlaces {
	r := &groupPlaces{places: places, domains: map[string]*domain{}}
	for _, place := range places {
		key := place.Key()
		if r.domains[key] == nil {
			r.domains[key] = &domain{place: place}
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
			// It goes, from where it has no place.
		case where[corev1.LabelHostname] != "" || pod.Spec.NodeName != "" && r.allNodesExist(known):
			r.misplaced = append(r.misplaced, pod)
		}
	}
	return r
}

// areAllThere reports whether all places are on nodes that are there: then a pod whose node is gone, and whose host nobody
// knows any more, is at none of them.
func (r *groupPlaces) allNodesExist(known nodes) bool {
	return !slices.ContainsFunc(r.places, func(p podspec.Place) bool { return p.Node() == "" || !known.exists(p.Node()) })
}

// fill gives free places to the gated pods: each its own, by rank, if it has one, and
// then what is left.
func (r *groupPlaces) fill(pods []*corev1.Pod, rankOf func(*corev1.Pod) (int32, bool)) (give []placement, misplaced []*corev1.Pod) {
	misplaced = append(r.misplaced, r.excess(rankOf)...)
	var anywhere []*corev1.Pod
	for _, pod := range byRank(pods, rankOf) {
		if !gated(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		d := r.domainOfRank(pod, rankOf)
		switch {
		case d == nil:
			anywhere = append(anywhere, pod)
		case d.free():
			give = append(give, d.take(pod))
		case int32(len(d.live)) < d.size:
			// Who leaves had its place, and frees it.
		default:
			anywhere = append(anywhere, pod)
		}
	}
	for _, pod := range anywhere {
		for _, place := range r.places {
			if d := r.domains[place.Key()]; d.free() {
				give = append(give, d.take(pod))
				break
			}
		}
	}
	return give, misplaced
}

func (d *domain) take(pod *corev1.Pod) placement {
	d.live = append(d.live, pod)
	return placement{pod: pod, place: d.place}
}

// surplus are the pods of domains that have more of them than places: those that have
// come least far, so that nobody who runs goes in place of one who waits; of these those
// whose ranks belong elsewhere, then the youngest.
func (r *groupPlaces) excess(rankOf func(*corev1.Pod) (int32, bool)) []*corev1.Pod {
	var out []*corev1.Pod
	for _, key := range slices.Sorted(maps.Keys(r.domains)) {
		d := r.domains[key]
		over := len(d.live) - int(d.size)
		if over <= 0 {
			continue
		}
		slices.SortStableFunc(d.live, func(a, b *corev1.Pod) int {
			return cmp.Or(
				cmp.Compare(progress(a), progress(b)),
				-cmp.Compare(outOfRank(r.domainOfRank(a, rankOf), d), outOfRank(r.domainOfRank(b, rankOf), d)),
				-a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
				cmp.Compare(a.Name, b.Name))
		})
		out = append(out, d.live[:over]...)
		d.terminating += int32(over)
		d.live = d.live[over:]
	}
	return out
}

// come is how far a pod has come: what would be lost with it.
func progress(pod *corev1.Pod) int {
	switch {
	case pod.Spec.NodeName == "":
		return 0
	case pod.Status.Phase != corev1.PodRunning:
		return 1
	}
	return 2
}

func outOfRank(belongs, is *domain) int {
	if belongs != nil && belongs != is {
		return 1
	}
	return 0
}

// ofRank is where the pod belongs by its rank, nil if that says nothing.
func (r *groupPlaces) domainOfRank(pod *corev1.Pod, rankOf func(*corev1.Pod) (int32, bool)) *domain {
	rank, ok := rankOf(pod)
	if !ok {
		return nil
	}
	places := r.places.Ranks(rank, rank+1)
	if len(places) == 0 {
		return nil // such as the index of a Job with more completions than pods
	}
	return r.domains[places[0].Key()]
}

// domainOf is the one of the place where a pod is, nil if it is at none.
func (r *groupPlaces) domainOf(where map[string]string) *domain {
	for _, place := range r.places {
		if contains(where, place.Domain) {
			return r.domains[place.Key()]
		}
	}
	return nil
}

func contains(have, wanted map[string]string) bool {
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return true
}

// whereabouts are the labels that say where a pod is or must go. The host of a node that is
// gone is the one that the pod was sent to, if that can be told: its name may be another.
func nodeLabelsOf(pod *corev1.Pod, known nodes) map[string]string {
	if pod.Spec.NodeName == "" {
		return pod.Spec.NodeSelector
	}
	where := map[string]string{}
	maps.Copy(where, pod.Spec.NodeSelector)
	if host := known.hostOf(pod.Spec.NodeName); host != "" {
		where[corev1.LabelHostname] = host
	} else if where[corev1.LabelHostname] == "" && podspec.Names(pod.Spec, pod.Spec.NodeName) {
		where[corev1.LabelHostname] = pod.Spec.NodeName
	}
	return where
}

// inOrder are the pods by rank, those without one by age.
func byRank(pods []*corev1.Pod, rankOf func(*corev1.Pod) (int32, bool)) []*corev1.Pod {
	return slices.SortedStableFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		x, _ := rankOf(a)
		y, _ := rankOf(b)
		return cmp.Or(cmp.Compare(x, y), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// gated reports whether the pod waits for a place.
func gated(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: kueue.TopologyGate})
}

// done reports whether the pod has ended and uses nothing any more.
func done(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
